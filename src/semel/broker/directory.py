"""The data directory: made if it is not there, locked, and known by its format.

`semel.format` holds the number of the format in its first line. A broker reads its own format and
those before it, and refuses what it does not know: guessing would destroy somebody's data. Whoever
adds a file or a kind of record that older brokers cannot read raises `FORMAT`, and teaches
`DataDirectory` to bring older directories up to it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from semel import __version__
from semel.broker.catalog import journal
from semel.broker.catalog.catalog import FILE_NAME as CATALOG_NAME
from semel.broker.start_failures import CannotStart

LOCK_NAME = "broker.lock"  # the store has one of its own, `.lock`, as Kafka's LogManager
FORMAT_NAME = "semel.format"
FORMAT = 1
#: Directories from before there was a format: the files are those of format 1.
UNMARKED = 0
#: What a file system, or a broker that died before it wrote anything, leaves in a new directory.
_HARMLESS = frozenset({LOCK_NAME, FORMAT_NAME, f"{FORMAT_NAME}.new", CATALOG_NAME, "lost+found"})


class DirectoryInUse(CannotStart):
    """Another broker works on this directory."""


class UnknownFormat(CannotStart):
    """The directory is a newer Semel's, or nobody's of this name."""


class DataDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = -1

    def open(self) -> None:
        """Make it, lock it, and see to its format."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not (self.path / LOCK_NAME).exists():
            self._format()  # before anything is left in a directory that is not ours
        self._take_lock()
        try:
            if self._format() < FORMAT:
                self._mark()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._lock >= 0:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = -1

    def _take_lock(self) -> None:
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
        self._lock = file
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())

    def _format(self) -> int:
        """The directory's format; raises if it is none that this version can work with."""
        number = self._number()
        strays = sorted(entry.name for entry in os.scandir(self.path) if _is_stray(entry.name))
        # Logs that no topic claims are removed at the start, and those of Kafka look like ours:
        # so what is there must be known to be ours.
        if not strays or journal.begins_well(self.path / CATALOG_NAME):
            return number
        if number == UNMARKED:
            raise UnknownFormat(
                f"The directory {self.path} is not empty ({strays[0]} is in it) and no data "
                "directory of Semel: give a new or empty directory."
            )
        raise UnknownFormat(
            f"The data directory {self.path} has lost its {CATALOG_NAME}, which says what is in "
            "it: put that file back from a backup, or give another directory."
        )

    def _number(self) -> int:
        try:
            mark = (self.path / FORMAT_NAME).read_text(errors="replace")
        except FileNotFoundError:
            return UNMARKED
        number, _, writer = mark.partition("\n")
        if not number.isascii() or not number.isdigit():
            raise UnknownFormat(
                f"The data directory {self.path} says nothing of its format that can be read (in "
                f"{FORMAT_NAME}): put that file back from a backup, or give another directory."
            )
        if int(number) > FORMAT:
            by = f", {writer.strip()}," if writer.strip() else ""
            raise UnknownFormat(
                f"The data directory {self.path} has format {number}{by} and this version of "
                f"Semel ({__version__}) knows formats up to {FORMAT}: use a newer Semel, or "
                "another directory."
            )
        return int(number)

    def _mark(self) -> None:
        """All at once, and on the device before anything else is written."""
        beside = self.path / f"{FORMAT_NAME}.new"
        with beside.open("w") as file:
            file.write(f"{FORMAT}\nwritten by Semel {__version__}\n")
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, self.path / FORMAT_NAME)
        journal.sync_directory(self.path)


def _is_stray(name: str) -> bool:
    return name not in _HARMLESS and not name.startswith(".")
