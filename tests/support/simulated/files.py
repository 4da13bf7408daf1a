"""The product's own store on real files, whose disk is slow and fails by dice.

A crash of the process loses nothing that was written, and leaves everything as it lies: directories
half made or half removed, checkpoints of before. Syncs take simulated time.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from tests.support.simulated.unreliable import Disk, Watched, in_small_segments

from semel.store.commit import Syncer
from semel.store.directory import DiskStore
from semel.store.disk import DiskLog
from semel.store.files import Files
from semel.store.interface import Buffer, LogConfig, StorageError

FAILURES_PER_CHANGE = 0.25
"""One append is several changes to the disk, some of them rarely made."""


class UnreliableFiles(Files):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def _may_fail(self, path: str) -> None:
        if self._disk.dice.random() < self._disk.failures * FAILURES_PER_CHANGE:
            raise OSError(errno.EIO, "a simulated disk failed", path)

    def open(self, path: str) -> int:
        self._may_fail(path)
        return super().open(path)

    def open_existing(self, path: str) -> int:
        self._may_fail(path)
        return super().open_existing(path)

    def write(self, fd: int, buffers: Sequence[Buffer]) -> int:
        self._may_fail("write")
        return os.writev(fd, buffers)

    def sync(self, fd: int) -> None:
        self._may_fail("sync")

    def sync_directory(self, path: str) -> None:
        self._may_fail(path)
        os.stat(path)  # of a directory that is gone it fails as the real one does

    def truncate(self, fd: int, size: int) -> None:
        self._may_fail("truncate")
        super().truncate(fd, size)

    def rename(self, source: str, target: str) -> None:
        self._may_fail(source)
        super().rename(source, target)

    def make_directory(self, path: str) -> None:
        self._may_fail(path)
        super().make_directory(path)


class SlowSyncer(Syncer):
    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self.is_gone = False

    def run(self, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        def finish() -> None:
            if self.is_gone:
                return
            try:
                work()
            except OSError as error:
                done(error)
            else:
                done(None)

        asyncio.get_running_loop().call_later(self._disk.sync_seconds(), finish)


class UnreliableDiskStore(Watched, DiskStore):
    def __init__(self, root: str, disk: Disk, clock: Callable[[], int]) -> None:
        super().__init__(
            root,
            durability="os" if disk.is_instant else "fsync",
            files=UnreliableFiles(disk),
            open_files=20,
            clock=clock,
        )
        self.disk = disk
        self.syncer = self._slow_syncer = SlowSyncer(disk)

    def create(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig | None = None
    ) -> DiskLog:
        self._check_alive()
        return super().create(topic, partition, topic_id, in_small_segments(config))

    def open(self, topic: str, partition: int, config: LogConfig | None = None) -> DiskLog:
        self._check_alive()
        return super().open(topic, partition, in_small_segments(config))

    def _check_alive(self) -> None:
        if self._slow_syncer.is_gone:
            raise StorageError("the broker has crashed")

    def break_log(self, name: tuple[str, int]) -> None:
        """Its disk fails all by itself."""
        log = self._logs.get(name)
        if log is not None:
            log._fail(OSError(errno.EIO, "a simulated disk failed"))

    def strays(self) -> list[str]:
        """Directories of no log, and what compactions and replaced files leave behind."""
        wanted = {f"{topic}-{partition}" for topic, partition in self.list()}
        kept = {f"{topic}-{partition}" for topic, partition in self._undeleted}
        found = [entry.name for entry in os.scandir(self.root) if entry.is_dir()]
        leftovers = [
            f"{directory}/{name}"
            for directory in wanted & set(found)
            for name in os.listdir(f"{self.root}/{directory}")
            if name.endswith((".cleaned", ".swap", ".tmp"))
        ]
        return sorted(set(found) - wanted - kept) + leftovers

    def crash(self) -> "UnreliableDiskStore":
        """The store that the next broker finds."""
        self._slow_syncer.is_gone = True
        for log in self._logs.values():
            log.offline = StorageError("the broker has crashed")
        self._lock = None
        return UnreliableDiskStore(self.root, self.disk, self.clock)


AnyStore = Any  # an UnreliableStore or an UnreliableDiskStore
