"""The files around a log's segments: its owner's side files, its epochs, what is on its way out.

Here is also the guard through which every error of the disk takes the log offline.
"""

import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from semel.store import checkpoints
from semel.store.commit import Syncer
from semel.store.files import FilePool, OpenFile, replace_file, write_all
from semel.store.interface import Log, LogConfig, StorageError
from semel.store.segment import Segment, name_of

# The log comes last: as long as it is there, recovery takes the segment for present.
_SEGMENT_SUFFIXES = ("index", "timeindex", "txnindex", "log")


class StoreServices(Protocol):
    """What a log needs of the store it lives in."""

    pool: FilePool
    syncer: Syncer
    fsync: bool
    clock: Callable[[], int]

    def start_offset_moved(self, log: Log) -> None: ...

    def cleaned_to(self, log: Log) -> int: ...

    def set_cleaned_to(self, log: Log, offset: int) -> None: ...

    def delete_later(self, paths: Sequence[str], delay_ms: int) -> None: ...


class LogFiles(Log):
    """The part of a log on disk that is not its batches."""

    def __init__(
        self, store: StoreServices, directory: str, topic: str, partition: int, config: LogConfig
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.config = config
        self.offline: StorageError | None = None
        self.directory = directory
        self._store = store
        self._files = store.pool.files
        self._fsync = store.fsync
        with self._guard():
            self.topic_id = checkpoints.read_topic_id(f"{directory}/{checkpoints.METADATA}")
            self._epochs = checkpoints.read_epochs(f"{directory}/{checkpoints.LEADER_EPOCHS}")

    @property
    def pool(self) -> FilePool:
        return self._store.pool

    def side_files(self, suffix: str) -> list[int]:
        ending = "." + suffix
        return sorted(
            int(name.removesuffix(ending))
            for name in os.listdir(self.directory)
            if name.endswith(ending)
        )

    def read_side_file(self, offset: int, suffix: str) -> bytes | None:
        try:
            with open(self._side_path(offset, suffix), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._fail(error) from error

    def write_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        with self._guard():
            replace_file(self._files, self._side_path(offset, suffix), content, self._fsync)

    def append_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        with self._guard():
            file = OpenFile(self._files.open(self._side_path(offset, suffix)))
            write_all(self._files, file.fd, [content])

    def delete_side_file(self, offset: int, suffix: str) -> None:
        with self._guard():
            path = self._side_path(offset, suffix)
            if os.path.exists(path):
                self._files.unlink(path)

    def stem(self, offset: int) -> str:
        return f"{self.directory}/{name_of(offset)}"

    def _side_path(self, offset: int, suffix: str) -> str:
        return f"{self.stem(offset)}.{suffix}"

    def _drop_side_files(self, from_offset: int, end: int) -> None:
        """After a cut: transaction indexes that must be built again, snapshots of what is lost."""
        for offset in self.side_files("txnindex"):
            if offset >= from_offset:
                self._files.unlink(self._side_path(offset, "txnindex"))
        for offset in self.side_files("snapshot"):
            if offset > end:
                self._files.unlink(self._side_path(offset, "snapshot"))

    @property
    def epochs(self) -> list[tuple[int, int]]:
        return list(self._epochs)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        if self._epochs and epoch <= self._epochs[-1][0]:
            return
        with self._guard():
            # An epoch that wrote nothing gives way to the next one at the same offset.
            self._epochs = [entry for entry in self._epochs if entry[1] < start_offset]
            self._epochs.append((epoch, start_offset))
            self._write_epochs()

    def _write_epochs(self) -> None:
        path = f"{self.directory}/{checkpoints.LEADER_EPOCHS}"
        checkpoints.write_epochs(self._files, path, self._epochs, self._fsync)

    def _delete_later(self, segment: Segment) -> None:
        """Take a segment's files out of the log now, and off the disk a little later."""
        segment.close()
        stem = self.stem(segment.base_offset)
        self._delete_files_later([f"{stem}.{suffix}" for suffix in _SEGMENT_SUFFIXES])

    def _delete_snapshots_later(self, first_offset: int, end_offset: int) -> None:
        self._delete_files_later(
            [
                self._side_path(offset, "snapshot")
                for offset in self.side_files("snapshot")
                if first_offset <= offset < end_offset
            ]
        )

    def _delete_files_later(self, paths: Sequence[str]) -> None:
        to_delete = []
        for path in paths:
            if os.path.exists(path):
                self._files.rename(path, path + ".deleted")
                to_delete.append(path + ".deleted")
        self._store.delete_later(to_delete, self.config.file_delete_delay_ms)

    # Going offline

    @contextmanager
    def _guard(self) -> Iterator[None]:
        if self.offline is not None:
            raise self.offline
        try:
            yield
        except (OSError, struct.error) as error:
            raise self._fail(error) from error

    def _fail(self, error: Exception) -> StorageError:
        if self.offline is None:
            cause = error if isinstance(error, OSError) else None
            name = errno.errorcode.get(cause.errno or 0, "") if cause else "corrupt"
            why = (cause and cause.strerror) or str(error)
            self.offline = StorageError(
                f"{self.topic}-{self.partition} is offline: {why}{f' ({name})' if name else ''}",
                cause,
            )
        return self.offline


def epochs_from(epochs: list[tuple[int, int]], start: int) -> list[tuple[int, int]]:
    """Drop epochs that ended before `start`; the one in force there begins at it."""
    later = [entry for entry in epochs if entry[1] > start]
    earlier = [entry for entry in epochs if entry[1] <= start]
    return [(earlier[-1][0], start), *later] if earlier else later
