"""The seam between the store and the operating system: here tests tear writes and fill disks.

`Files` is every way in which the store changes a disk. Reading goes straight through descriptors.
`Handle` is a file opened when first used; `FilePool` bounds how many are open at once.
"""

import errno
import os
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from semel.store.interface import Buffer


class OpenFile:
    """A descriptor that closes itself when nobody holds it any more.

    Regions on their way to a socket hold one, so dropping it from the pool or deleting the file
    does not disturb them.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


class Files:
    """The real thing. A test subclasses it to lose, tear or refuse what is written."""

    def open(self, path: str) -> int:
        """For reading and for appending, created where it is missing."""
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def open_existing(self, path: str) -> int:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    # write(fd, buffers): the system call itself, nothing around it, for it is part of every append.
    write: Callable[..., int] = staticmethod(os.writev)

    def sync(self, fd: int) -> None:
        # macOS has no fdatasync.
        getattr(os, "fdatasync", os.fsync)(fd)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.mkdir(path)

    def remove_directory(self, path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def write_all(files: Files, fd: int, buffers: Sequence[Buffer]) -> int:
    """Write every byte or raise: a short write (a disk about to be full) is followed up."""
    total = 0
    # IOV_MAX is 1024 on Linux and macOS.
    for start in range(0, len(buffers), 1024):
        pending = [memoryview(buffer) for buffer in buffers[start : start + 1024]]
        while pending:
            written = files.write(fd, pending)
            total += written
            while pending and written >= len(pending[0]):
                written -= len(pending.pop(0))
            if pending:
                pending[0] = pending[0][written:]
    return total


def replace_file(files: Files, path: str, content: bytes, durable: bool) -> None:
    """Put a whole new file in place of the old one, or leave the old one."""
    temporary = path + ".tmp"
    file = OpenFile(files.open(temporary))
    if os.fstat(file.fd).st_size:
        files.truncate(file.fd, 0)
    write_all(files, file.fd, [content])
    if durable:
        files.sync(file.fd)
    files.rename(temporary, path)
    if durable:
        files.sync_directory(os.path.dirname(path))


class Evictable(Protocol):
    file: OpenFile | None
    used: bool


#: A pool that was told that there are no descriptors left keeps at least so many.
LEAST_OPEN = 16


class FilePool:
    """Keeps at most `capacity` handles open; one used since the last look gets a second chance."""

    def __init__(self, files: Files, capacity: int = 1024) -> None:
        self.files = files
        self.capacity = capacity
        self._open: deque[Evictable] = deque()

    def __len__(self) -> int:
        return sum(handle.file is not None for handle in self._open)

    def open(self, how: Callable[[str], int], path: str) -> OpenFile:
        """Open a file; if the process has no descriptor left, others of ours are closed for it."""
        try:
            return OpenFile(how(path))
        except OSError as problem:
            if problem.errno not in (errno.EMFILE, errno.ENFILE) or not self._open:
                raise
        self.capacity = max(LEAST_OPEN, len(self) // 2)
        self._make_room(None)
        return OpenFile(how(path))

    def opened(self, handle: Evictable) -> None:
        self._open.append(handle)
        self._make_room(handle)

    def _make_room(self, handle: Evictable | None) -> None:
        chances = len(self._open)
        while len(self._open) > self.capacity:
            oldest = self._open.popleft()
            if oldest is handle:
                # Never the one just opened: who asked for it has not even got it yet.
                self._open.append(oldest)
            elif oldest.file is not None and oldest.used and chances:
                chances -= 1
                oldest.used = False
                self._open.append(oldest)
            else:
                oldest.file = None


class Handle:
    """One file of a segment, opened when needed and closed when others need the place more."""

    __slots__ = ("file", "path", "pool", "used")

    def __init__(self, pool: FilePool, path: str) -> None:
        self.pool = pool
        self.path = path
        self.file: OpenFile | None = None
        self.used = False

    def get(self) -> OpenFile:
        self.used = True
        file = self.file
        if file is None:
            # Never creates: a log that vanished must fail loudly, not come back empty.
            file = self.file = self.pool.open(self.pool.files.open_existing, self.path)
            self.pool.opened(self)
        return file

    def create(self) -> OpenFile:
        """Open the file whether it is there or not."""
        self.file = self.pool.open(self.pool.files.open, self.path)
        self.pool.opened(self)
        return self.file

    def rename(self, path: str) -> None:
        """Move the file; who has it open keeps it."""
        self.pool.files.rename(self.path, path)
        self.path = path

    def close(self) -> None:
        self.file = None
