"""Sparse indexes in Kafka's format: `.index` (offset → position), `.timeindex` (time → offset).

New entries collect in memory and reach the file in blocks, so an append costs no extra system call;
after a crash recovery rebuilds them from the log. Entries on disk are searched in place: an index
takes no memory however long its segment is.
"""

import os
from array import array
from bisect import bisect_right
from struct import Struct

from semel.store.files import FilePool, Handle, write_all

_FLUSH_ENTRIES = 256
# What one read fetches of an index that is searched on disk: 4 KiB of the smaller entries.
_BLOCK_ENTRIES = 512


class SparseIndex:
    """Pairs of numbers, both never decreasing, kept on disk as fixed-size entries."""

    __slots__ = ("_entry", "_flush_at", "_keys", "_on_disk", "_values", "handle")

    def __init__(self, pool: FilePool, path: str, entry: Struct) -> None:
        self.handle = Handle(pool, path)
        self._entry = entry
        self._on_disk = 0
        self._flush_at = _FLUSH_ENTRIES
        # Eight bytes signed: holds a timestamp as well as an offset.
        self._keys = array("q")
        self._values = array("q")

    def __len__(self) -> int:
        return self._on_disk + len(self._keys)

    @property
    def entry_size(self) -> int:
        return self._entry.size

    @property
    def size_bytes(self) -> int:
        return (self._on_disk + len(self._keys)) * self._entry.size

    def adopt(self, size: int) -> None:
        """Trust `size` bytes of entries that lie in the file already."""
        self._on_disk = size // self._entry.size

    def append(self, key: int, value: int) -> None:
        self._keys.append(key)
        self._values.append(value)
        if len(self._keys) >= self._flush_at:
            self.flush()

    def last(self) -> tuple[int, int] | None:
        return self[len(self) - 1] if len(self) else None

    def __getitem__(self, number: int) -> tuple[int, int]:
        if number >= self._on_disk:
            return self._keys[number - self._on_disk], self._values[number - self._on_disk]
        size = self._entry.size
        data = os.pread(self.handle.get().fd, size, number * size)
        key, value = self._entry.unpack(data)
        return key, value

    def floor(self, key: int) -> tuple[int, int] | None:
        """The last entry whose key is at most `key`."""
        if self._keys and self._keys[0] <= key:
            found = bisect_right(self._keys, key) - 1
            return self._keys[found], self._values[found]
        return self._floor_on_disk(0, key)

    def floor_by_value(self, value: int) -> tuple[int, int] | None:
        """The last entry whose value is at most `value`."""
        if self._values and self._values[0] <= value:
            found = bisect_right(self._values, value) - 1
            return self._keys[found], self._values[found]
        return self._floor_on_disk(1, value)

    def _floor_on_disk(self, field: int, wanted: int) -> tuple[int, int] | None:
        """Halve the file by blocks, each one read, until the entry must lie within one."""
        size, read = self._entry.size, self._entry.unpack_from
        low, high = 0, self._on_disk
        found: tuple[int, int] | None = None
        while low < high:
            start = max(low, (low + high - _BLOCK_ENTRIES) // 2)
            count = min(_BLOCK_ENTRIES, high - start)
            block = os.pread(self.handle.get().fd, count * size, start * size)
            if read(block, 0)[field] > wanted:
                high = start
                continue
            number = bisect_right(range(count), wanted, key=lambda i: read(block, i * size)[field])
            key, value = read(block, (number - 1) * size)
            found = key, value
            if number < count:
                return found
            low = start + count
        return found

    def flush(self) -> None:
        """Bring the file up to date."""
        if self._keys:
            self._write(self._content())

    def begin_again(self) -> None:
        """Forget every entry and collect all of them anew, in memory until `finish_again`."""
        self._on_disk = 0
        self._flush_at = 1 << 62
        del self._keys[:], self._values[:]

    def finish_again(self) -> None:
        """Bring the file up to date, by as little as possible.

        After a kill it mostly lacks an end, or nothing. Truncating a file costs milliseconds,
        which thousands of logs cannot afford at a start.
        """
        self._flush_at = _FLUSH_ENTRIES
        content = self._content()
        file = self.handle.create()
        there = os.pread(file.fd, len(content) + 1, 0)
        if not content.startswith(there):
            self.handle.pool.files.truncate(file.fd, 0)
            there = b""
        self._write(content[len(there) :])

    def _content(self) -> bytes:
        return b"".join(map(self._entry.pack, self._keys, self._values))

    def _write(self, content: bytes) -> None:
        if content:
            write_all(self.handle.pool.files, self.handle.get().fd, [content])
        self._on_disk += len(self._keys)
        del self._keys[:], self._values[:]


_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


def offset_index(pool: FilePool, path: str) -> SparseIndex:
    """(last offset of a batch relative to the segment's base, position of that batch)."""
    return SparseIndex(pool, path, _OFFSET_ENTRY)


def time_index(pool: FilePool, path: str) -> SparseIndex:
    """(largest timestamp so far, relative last offset of the batch that brought it)."""
    return SparseIndex(pool, path, _TIME_ENTRY)
