"""A disk that loses power, tears writes, fills up or breaks, on demand and by seed.

`FaultyFiles` works on real files, so that everything can be read back as usual, and remembers
beside them what a disk would hold: a file's content as of its last sync, the names as of the last
sync of a directory, and everything since. `after_power_loss` draws one of the states in which such
a disk may be found: names change in order (a journal), contents by sectors, in any order.
"""

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from semel.store.files import Files
from semel.store.interface import Buffer

SECTOR = 512


class PowerLoss(BaseException):
    """The machine stops here. Not an `Exception`: nothing in the store may handle it."""


class _Fault(NamedTuple):
    operation: str
    path: str
    code: int
    partial: int
    once: bool


class _Inode:
    """A file's content: now, as of the last sync, and the changes in between."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.synced = content
        self.unsynced: list[tuple[int, bytes | None]] = []

    def sync(self) -> None:
        self.synced = bytes(self.content)
        self.unsynced.clear()

    def write(self, data: bytes) -> None:
        self.unsynced.append((len(self.content), data))
        self.content += data

    def truncate(self, size: int) -> None:
        self.unsynced.append((size, None))
        del self.content[size:]
        self.content += bytes(size - len(self.content))

    def survivor(self, random: Random) -> bytes:
        """What is found after the power failed: some changes whole, of the rest some sectors."""
        whole = random.randint(0, len(self.unsynced))
        chance = random.choice([0.0, 0.5, 0.9])
        content = bytearray(self.synced)
        for number, (at, data) in enumerate(self.unsynced):
            if data is None:
                if number < whole:
                    del content[at:]
                    content += bytes(at - len(content))
                continue
            for start in range(0, len(data), SECTOR):
                if number < whole or random.random() < chance:
                    piece = data[start : start + SECTOR]
                    content += bytes(max(0, at + start - len(content)))
                    content[at + start : at + start + len(piece)] = piece
        return bytes(content)


class FaultyFiles(Files):
    """Real files under `root`, with power failing at the `crash_after`-th change to the disk."""

    def __init__(self, root: str | os.PathLike[str], crash_after: int | None = None) -> None:
        self.root = os.fspath(root)
        self.changes = 0
        self.syncs = 0
        self.crash_after = crash_after
        self._faults: list[_Fault] = []
        self._descriptors: dict[int, tuple[str, _Inode]] = {}
        self._names: dict[str, _Inode | None] = {}
        for path in Path(self.root).rglob("*"):
            self._names[str(path)] = _Inode(path.read_bytes()) if path.is_file() else None
        self._durable = dict(self._names)
        self._journal: list[dict[str, _Inode | None]] = []

    # Faults

    def fail(
        self, operation: str, code: int, path: str = "", partial: int = 0, once: bool = False
    ) -> None:
        """Let `operation` ("write", "sync", "open", …) on paths containing `path` fail from now on,
        or `once`. A write first writes `partial` bytes: a disk that is nearly full.
        """
        self._faults.append(_Fault(operation, path, code, partial, once))

    def heal(self) -> None:
        self._faults.clear()

    def after_power_loss(self, target: str | os.PathLike[str], random: Random) -> None:
        """Lay out in `target` what the disk may hold now."""
        states = [self._durable, *self._journal]
        names = random.choice(states)
        for path, inode in sorted(names.items()):
            found = Path(target) / os.path.relpath(path, self.root)
            if inode is None:
                found.mkdir(parents=True, exist_ok=True)
            else:
                found.parent.mkdir(parents=True, exist_ok=True)
                found.write_bytes(inode.survivor(random))

    # Files

    def open(self, path: str) -> int:
        self._check("open", path)
        if path not in self._names:
            self._change("open", path)
            self._names[path] = _Inode()
            self._renamed()
        fd = super().open(path)
        self._remember(fd, path)
        return fd

    def open_existing(self, path: str) -> int:
        self._check("open", path)
        fd = super().open_existing(path)
        self._remember(fd, path)
        return fd

    def write(self, fd: int, buffers: Sequence[Buffer]) -> int:
        path, inode = self._descriptors[fd]
        data = b"".join(buffers)
        fault = self._fault("write", path)
        if self._crashes():
            # The process dies within the call: any part of the data may have reached the file.
            data = data[: len(data) * (self.changes % 7) // 7]
            inode.write(data)
            os.write(fd, data)
            raise PowerLoss
        if fault is not None and fault.partial < len(data):
            if not fault.partial:
                raise self._strike(fault, path)
            inode.write(data[: fault.partial])
            os.write(fd, data[: fault.partial])
            self._faults = [other._replace(partial=0) for other in self._faults]
            return fault.partial
        inode.write(data)
        return os.writev(fd, buffers)

    def sync(self, fd: int) -> None:
        path, inode = self._descriptors[fd]
        self._check("sync", path)
        self._change("sync", path)
        self.syncs += 1
        inode.sync()

    def truncate(self, fd: int, size: int) -> None:
        path, inode = self._descriptors[fd]
        self._check("truncate", path)
        self._change("truncate", path)
        inode.truncate(size)
        super().truncate(fd, size)

    def rename(self, source: str, target: str) -> None:
        self._check("rename", source)
        self._change("rename", source)
        super().rename(source, target)
        for path in [p for p in self._names if p == source or p.startswith(source + "/")]:
            self._names[target + path[len(source) :]] = self._names.pop(path)
        self._renamed()

    def unlink(self, path: str) -> None:
        self._check("unlink", path)
        self._change("unlink", path)
        super().unlink(path)
        self._names.pop(path, None)
        self._renamed()

    def make_directory(self, path: str) -> None:
        self._check("make_directory", path)
        self._change("make_directory", path)
        super().make_directory(path)
        self._names[path] = None
        self._renamed()

    def remove_directory(self, path: str) -> None:
        self._change("remove_directory", path)
        shutil.rmtree(path, ignore_errors=True)
        for name in [p for p in self._names if p == path or p.startswith(path + "/")]:
            del self._names[name]
        self._renamed()

    def sync_directory(self, path: str) -> None:
        self._check("sync_directory", path)
        self._change("sync_directory", path)
        self._durable = dict(self._names)
        self._journal.clear()

    # Within

    def _remember(self, fd: int, path: str) -> None:
        inode = self._names[path]
        assert inode is not None
        self._descriptors[fd] = path, inode

    def _renamed(self) -> None:
        self._journal.append(dict(self._names))

    def _crashes(self) -> bool:
        self.changes += 1
        return self.crash_after is not None and self.changes >= self.crash_after

    def _change(self, operation: str, path: str) -> None:
        if self._crashes():
            raise PowerLoss(f"{operation} {path}")

    def _fault(self, operation: str, path: str) -> "_Fault | None":
        for fault in self._faults:
            if fault.operation == operation and fault.path in path:
                return fault
        return None

    def _strike(self, fault: "_Fault", path: str) -> OSError:
        if fault.once:
            self._faults.remove(fault)
        return OSError(fault.code, os.strerror(fault.code), path)

    def _check(self, operation: str, path: str) -> None:
        fault = self._fault(operation, path)
        if fault is not None:
            raise self._strike(fault, path)


DISK_FULL = errno.ENOSPC
NO_PERMISSION = errno.EACCES
BROKEN = errno.EIO
