"""A disk that is full when a test says so."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence

from semel.store.files import Files
from semel.store.interface import Buffer


class DiskOfTest(Files):
    """The broker's way to its logs. `kafka.disk.fill()` lets every write fail with "No space left
    on device" until `kafka.disk.free()`."""

    def __init__(self, on_free: Callable[[], None]) -> None:
        self._on_free = on_free
        self.is_full = False
        self.refused = 0
        """How many writes failed."""

    def fill(self) -> None:
        self.is_full = True

    def free(self) -> None:
        """There is room again, and the partitions that went offline are back."""
        if self.is_full:
            self.is_full = False
            self._on_free()

    def open(self, path: str) -> int:
        if self.is_full and not os.path.exists(path):
            self._refuse(path)
        return super().open(path)

    def write(self, fd: int, buffers: Sequence[Buffer]) -> int:
        if self.is_full:
            self._refuse(None)
        return os.writev(fd, buffers)

    def make_directory(self, path: str) -> None:
        if self.is_full:
            self._refuse(path)
        super().make_directory(path)

    def _refuse(self, path: str | None) -> None:
        self.refused += 1
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
