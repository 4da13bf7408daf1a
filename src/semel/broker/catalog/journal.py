"""An append-only file of small records, each with its checksum, that survives a crash at any byte.

An entry is 4 bytes of length, 4 bytes of CRC-32C and a JSON list of records (so that a person can
read it): the records of one `append` are there together or not at all. `append` returns once the
bytes are on the device. What a crash left half-written at the end is cut off when the file is
opened; damage anywhere else is refused, because what follows it was acknowledged.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from semel.broker.start_failures import CannotStart
from semel.wire.checksum import crc32c

HEADER = struct.Struct(">II")
#: Nobody else reads it: there are credentials and passwords in it.
MODE = 0o600
Record = dict[str, Any]


class DamagedJournal(CannotStart):
    """The file is broken before its end: not what a crash leaves behind."""


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._file = -1

    def open(self) -> tuple[list[Record], int]:
        """All records, and how many bytes of a torn tail were cut off."""
        created = not self.path.exists()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, MODE)
        os.fchmod(self._file, MODE)  # also one that was made before it held secrets
        content = self.path.read_bytes()
        try:
            records, self.size = read(content)
        except ValueError as problem:
            raise DamagedJournal(
                f"{self.path} holds an entry that is not JSON ({problem}): put the file back from "
                "a backup, or give another data directory."
            ) from None
        torn = len(content) - self.size
        if torn:
            self._check_torn(content)
            os.ftruncate(self._file, self.size)
            os.fsync(self._file)
        if created:
            sync_directory(self.path.parent)
        return records, torn

    def append(self, records: Iterable[Record]) -> None:
        """Write and sync. A failure leaves the file as it was, or takes the journal out of use."""
        content = packed(records)
        try:
            _write_all(self._file, content)
            os.fsync(self._file)
        except OSError:
            self._take_back()
            raise
        self.size += len(content)

    def replace(self, records: Iterable[Record]) -> None:
        """Put these records in place of all that is there, at once or not at all."""
        beside = self.path.with_suffix(".new")
        content = packed(records)
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, MODE)
        try:
            _write_all(file, content)
            os.fsync(file)
            os.rename(beside, self.path)
        except OSError:
            os.close(file)
            raise
        os.close(self._file)
        self._file, self.size = file, len(content)
        sync_directory(self.path.parent)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _take_back(self) -> None:
        # A half-written entry in the middle would hide all that comes after it.
        try:
            os.ftruncate(self._file, self.size)
        except OSError:
            self.close()

    def _check_torn(self, content: bytes) -> None:
        """A crash cuts short the last append alone, so no good entry may follow a bad one."""
        for position in range(self.size + 1, len(content) - HEADER.size):
            if _entry_at(content, position) is not None:
                raise DamagedJournal(
                    f"{self.path} is damaged at byte {self.size}, but goes on at byte {position}: "
                    "put it back from a backup, or give another data directory."
                )


def packed(records: Iterable[Record]) -> bytes:
    content = json.dumps(list(records), separators=(",", ":")).encode()
    return HEADER.pack(len(content), crc32c(content)) + content


def read(content: bytes) -> tuple[list[Record], int]:
    """The records at the front of `content`, and where the last good entry ends."""
    records: list[Record] = []
    position = 0
    while (found := _entry_at(content, position)) is not None:
        records += json.loads(found)
        position += HEADER.size + len(found)
    return records, position


def begins_well(path: Path) -> bool:
    """Whether there is a journal at `path`: a file whose first entry is whole."""
    try:
        with path.open("rb") as file:
            header = file.read(HEADER.size)
            if len(header) < HEADER.size:
                return False
            return _entry_at(header + file.read(HEADER.unpack(header)[0]), 0) is not None
    except FileNotFoundError:
        return False


def sync_directory(directory: Path) -> None:
    """Make a rename or a new file in it durable."""
    file = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _entry_at(content: bytes, position: int) -> bytes | None:
    if position + HEADER.size > len(content):
        return None
    length, checksum = HEADER.unpack_from(content, position)
    start = position + HEADER.size
    # No entry is empty: a run of zeros (a tail never written out) is not an entry.
    if length == 0 or start + length > len(content):
        return None
    entry = content[start : start + length]
    return entry if crc32c(entry) == checksum else None


def _write_all(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]
