"""The data directory: made if it is not there, and locked, so that it has one broker at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCK_NAME = "broker.lock"  # the store has one of its own, `.lock`, as Kafka's LogManager


class DirectoryInUse(Exception):
    """Another broker works on this directory."""


class DataDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    def lock(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(file, 32).decode(errors="replace").strip()
            os.close(file)
            by = f" (process {owner})" if owner else ""
            raise DirectoryInUse(
                f"The data directory {self.path} is in use by another broker{by}: "
                "stop that one, or give this one a directory of its own."
            ) from None
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        self._lock = file

    def unlock(self) -> None:
        if self._lock >= 0:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = -1
