"""All the logs in one directory on disk, and the checkpoints that let a start be quick."""

import fcntl
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal
from uuid import UUID, uuid4

from semel.store import checkpoints
from semel.store.checkpoints import LogName
from semel.store.commit import Syncer
from semel.store.disk import DiskLog
from semel.store.files import FilePool, Files, OpenFile
from semel.store.interface import Log, LogConfig, LogDeleted, StorageError, Store

_DIRECTORY = re.compile(r"(.+)-(\d+)")
_DOOMED = re.compile(r".+-\d+\.[0-9a-f]{32}-delete")
# What may be in a log's directory. One with anything else in it is not ours to remove.
_OF_A_LOG = re.compile(
    rf"\d{{20}}\.|{re.escape(checkpoints.METADATA)}|{re.escape(checkpoints.LEADER_EPOCHS)}"
)
# How many logs a clean stop syncs at a time: each holds three descriptors meanwhile.
_CLOSE_TOGETHER = 64
_CLOSE_THREADS = 8

logger = logging.getLogger(__name__)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class DiskStore(Store):
    """Logs under `root`, one directory each, laid out as Kafka's log.dirs.

    `durability` "os" acknowledges what the operating system holds (a killed process loses nothing),
    "fsync" what the disk holds. At most `open_files` descriptors are kept open between uses.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        durability: Literal["os", "fsync"] = "os",
        open_files: int = 1024,
        files: Files | None = None,
        clock: Callable[[], int] = _now_ms,
    ) -> None:
        self.root = os.fspath(root)
        self.fsync = durability == "fsync"
        self.clock = clock
        self.files = files or Files()
        self.pool = FilePool(self.files, open_files)
        self.syncer = Syncer()
        self._logs: dict[LogName, DiskLog] = {}
        self._to_delete: list[tuple[int, str]] = []
        os.makedirs(self.root, exist_ok=True)
        self._lock: OpenFile | None = _lock(self.root)
        self.started_clean = checkpoints.take_clean_mark(self.files, self.root)
        self._recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        self._start_offsets = self._read(checkpoints.START_OFFSETS)
        self._cleaner_offsets = self._read(checkpoints.CLEANER_OFFSETS)
        self._names = self._find_logs()
        self._undeleted: set[LogName] = set()
        """Deleted, but the disk would not let their directories go."""
        self._stale: set[LogName] = set()
        """Gone, but the files of offsets still speak of them: read as offsets of a new log of the
        same name, they would hide its records."""
        for name in self._recorded_names() - self._names:
            self._forget_offsets(name)

    def list(self) -> list[LogName]:
        return sorted(self._names)

    def __contains__(self, log: LogName) -> bool:
        return log in self._names

    def topic_id(self, topic: str, partition: int) -> UUID:
        name = (topic, partition)
        log = self._logs.get(name)
        if log is not None:
            return log.topic_id
        try:
            return checkpoints.read_topic_id(f"{self._directory(name)}/{checkpoints.METADATA}")
        except OSError as error:
            raise StorageError(f"{topic}-{partition} is of no known topic: {error}") from error

    def create(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig | None = None
    ) -> DiskLog:
        name = (topic, partition)
        if name in self._names:
            raise FileExistsError(f"{topic}-{partition} exists")
        directory = self._directory(name)
        try:
            self._clear_the_way(name)
            self.files.make_directory(directory)
        except OSError as error:
            raise StorageError(f"{topic}-{partition} cannot be created: {error}", error) from error
        try:
            path = f"{directory}/{checkpoints.METADATA}"
            checkpoints.write_topic_id(self.files, path, topic_id, self.fsync)
            if self.fsync:
                self.files.sync_directory(self.root)
            log = DiskLog(self, directory, topic, partition, config or LogConfig(), clean=True)
        except (OSError, StorageError) as error:
            # Nothing half made stays: it would be in the way of the next try.
            self.files.remove_directory(directory)
            cause = error if isinstance(error, OSError) else error.cause
            raise StorageError(f"{topic}-{partition} cannot be created: {error}", cause) from error
        self._names.add(name)
        self._logs[name] = log
        return log

    def open(self, topic: str, partition: int, config: LogConfig | None = None) -> DiskLog:
        name = (topic, partition)
        if name not in self._names:
            raise FileNotFoundError(f"no log {topic}-{partition}")
        known = self._logs.get(name)
        if known is not None and known.offline is None:
            return known
        if known is not None and known.offline is not None:
            known.shut(known.offline)
            config = config or known.config
        point = self._recovery_points.get(name, 0)
        log = DiskLog(
            self,
            self._directory(name),
            topic,
            partition,
            config or LogConfig(),
            start_offset=self._start_offsets.get(name, 0),
            recovery_point=point,
            # A log that went offline is suspect however the last stop went.
            clean=known is None and self.started_clean and name in self._recovery_points,
        )
        self._logs[name] = log
        return log

    def delete(self, topic: str, partition: int) -> None:
        name = (topic, partition)
        self._names.remove(name)
        log = self._logs.pop(name, None)
        if log is not None:
            log.shut(LogDeleted(f"{topic}-{partition} was deleted"))
        self._forget_offsets(name)
        try:
            self._rename_to_delete(name, (log.config if log else LogConfig()).file_delete_delay_ms)
        except OSError as error:
            self._undeleted.add(name)
            raise StorageError(f"{topic}-{partition} cannot be deleted: {error}", error) from error

    def checkpoint(self) -> None:
        try:
            self._write_checkpoints()
        except OSError as error:
            # The older checkpoint stays, and with it a recovery that reads more: nothing is lost.
            logger.warning("the checkpoint in %s could not be written: %s", self.root, error)

    def sweep(self) -> Iterator[None]:
        now_ms = self.clock()
        due = [entry for entry in self._to_delete if entry[0] <= now_ms]
        self._to_delete = [entry for entry in self._to_delete if entry[0] > now_ms]
        try:
            while due:
                self._remove_quietly(due.pop()[1])
                yield
        finally:
            self._to_delete += due  # the sweep was stopped in the middle

    def close(self) -> None:
        self.syncer.close()
        logs = list(self._logs.values())
        with ThreadPoolExecutor(_CLOSE_THREADS) as threads:
            for start in range(0, len(logs), _CLOSE_TOGETHER):
                some = logs[start : start + _CLOSE_TOGETHER]
                flushed = [_flushed(log) for log in some]
                for log, synced in zip(some, threads.map(self._sync_all, flushed), strict=True):
                    if synced:
                        log.recovery_point = log.next_offset
                        self._note_offsets(log)
                    log.shut(StorageError(f"{log.topic}-{log.partition} is closed"))
                    if not synced:
                        # Without a recovery point it is not taken for clean at the next start.
                        self._recovery_points.pop((log.topic, log.partition), None)
                        del self._logs[log.topic, log.partition]
        if not self.started_clean:
            for name in self._names - self._logs.keys():  # nor is what nobody could open since
                self._recovery_points.pop(name, None)
        try:
            self._write_checkpoints()
            for _, path in self._to_delete:
                self._remove(path)
            checkpoints.mark_clean(self.files, self.root, durable=True)
        except OSError as error:
            logger.warning("the stop of %s is not clean: %s", self.root, error)
        self._lock = None

    # What logs ask of their store

    def start_offset_moved(self, log: Log) -> None:
        self._start_offsets[log.topic, log.partition] = log.start_offset
        self._write(checkpoints.START_OFFSETS, self._start_offsets)

    def delete_later(self, paths: Sequence[str], delay_ms: int) -> None:
        due_ms = self.clock() + delay_ms
        self._to_delete += [(due_ms, path) for path in paths]

    def cleaned_to(self, log: Log) -> int:
        """The first offset that compaction has not seen yet."""
        return self._cleaner_offsets.get((log.topic, log.partition), 0)

    def set_cleaned_to(self, log: Log, offset: int) -> None:
        self._cleaner_offsets[log.topic, log.partition] = offset
        self._write(checkpoints.CLEANER_OFFSETS, self._cleaner_offsets)

    # Within

    def _rename_to_delete(self, name: LogName, delay_ms: int) -> None:
        """Kafka's name for a directory on its way out: a topic of the same name may come now."""
        to_delete = f"{self.root}/{name[0][:200]}-{name[1]}.{uuid4().hex}-delete"
        self.files.rename(self._directory(name), to_delete)
        self.delete_later([to_delete], delay_ms)

    def _clear_the_way(self, name: LogName) -> None:
        """Nothing of a deleted log of this name may be taken for the new one's."""
        if name in self._undeleted:
            self._rename_to_delete(name, 0)
            self._undeleted.remove(name)
        if name in self._stale:
            self._write_checkpoints()

    def _note_offsets(self, log: DiskLog) -> None:
        name = (log.topic, log.partition)
        self._recovery_points[name] = log.recovery_point
        if log.start_offset > log.first_base_offset:
            self._start_offsets[name] = log.start_offset
        else:
            self._start_offsets.pop(name, None)

    def _forget_offsets(self, name: LogName) -> None:
        for offsets in (self._recovery_points, self._start_offsets, self._cleaner_offsets):
            if offsets.pop(name, None) is not None:
                self._stale.add(name)

    def _recorded_names(self) -> set[LogName]:
        return {*self._recovery_points, *self._start_offsets, *self._cleaner_offsets}

    def _directory(self, name: LogName) -> str:
        return f"{self.root}/{name[0]}-{name[1]}"

    def _find_logs(self) -> set[LogName]:
        names = set()
        for entry in os.scandir(self.root):
            if _DOOMED.fullmatch(entry.name):
                self._remove(entry.path)
                continue
            match = _DIRECTORY.fullmatch(entry.name)
            if match and entry.is_dir() and self._is_log(entry.path):
                names.add((match[1], int(match[2])))
        return names

    def _is_log(self, directory: str) -> bool:
        """Removes it if its creation was cut short: nothing is written before its metadata."""
        if os.path.exists(f"{directory}/{checkpoints.METADATA}"):
            return True
        files = list(os.scandir(directory))
        if not all(_OF_A_LOG.match(file.name) for file in files):
            logger.warning("%s is no log and is left alone", directory)
            return False
        if any(file.name.endswith(".log") and file.stat().st_size for file in files):
            logger.error(
                "%s holds records and has lost its %s, which says whose they are: its partition is "
                "offline until that file is put back, or the directory is taken away",
                directory,
                checkpoints.METADATA,
            )
            return True
        self.files.remove_directory(directory)
        return False

    def _remove(self, path: str) -> None:
        if os.path.isdir(path):
            self.files.remove_directory(path)
        elif os.path.exists(path):
            self.files.unlink(path)

    def _remove_quietly(self, path: str) -> None:
        try:
            self._remove(path)
        except OSError as error:
            logger.warning("%s could not be removed: %s", path, error)

    def _sync_all(self, handles: Sequence[OpenFile] | None) -> bool:
        try:
            for file in handles or ():
                self.files.sync(file.fd)
        except OSError:
            return False
        return handles is not None

    def _write_checkpoints(self) -> None:
        for log in self._logs.values():
            if log.offline is None:  # or its owner may still have to rebuild what recovery removed
                self._note_offsets(log)
        self._write(checkpoints.RECOVERY_POINTS, self._recovery_points)
        self._write(checkpoints.START_OFFSETS, self._start_offsets)
        if self._stale:
            self._write(checkpoints.CLEANER_OFFSETS, self._cleaner_offsets)
            self._stale.clear()

    def _read(self, name: str) -> dict[LogName, int]:
        return checkpoints.read_offsets(f"{self.root}/{name}")

    def _write(self, name: str, offsets: dict[LogName, int]) -> None:
        checkpoints.write_offsets(self.files, f"{self.root}/{name}", offsets, self.fsync)


def _lock(root: str) -> OpenFile:
    """Two brokers in one directory would destroy it: Kafka's `.lock` file keeps the second out."""
    file = OpenFile(os.open(f"{root}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
    try:
        fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise StorageError(f"another process uses {root}", error) from error
    return file


def _flushed(log: DiskLog) -> list[OpenFile] | None:
    """The files that must be synced before the log counts as clean; None if it cannot be."""
    try:
        return log.flush()
    except StorageError:
        return None
