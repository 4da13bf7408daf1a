"""The few helpers that compiled codecs call: varints, tag sections, UUIDs, and how they complain.

Everything frequent is inlined by the compiler; what is here runs for long lengths, for tags and
for broken input. Reading helpers may also raise IndexError or struct.error past the end of the
buffer: `Message.decode` turns those into ProtocolError in one place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from semel.wire.errors import ProtocolError

Buffer = bytes | bytearray | memoryview

NO_UUID = UUID(int=0)  # Kafka's "no id": sixteen zero bytes

# Kafka refuses longer strings in every version, although a compact length could say more
# (the generated readers of org.apache.kafka.common.message).
MAX_STRING_BYTES = 0x7FFF


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, and the position after it."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise ProtocolError("a varint is longer than five bytes")
    if value > 0xFFFFFFFF:
        raise ProtocolError("a varint does not fit in 32 bits")
    return value, position


def read_length(buffer: Buffer, position: int) -> tuple[int, int]:
    """A compact length plus one that takes more than a byte, and the position of its last byte."""
    second = buffer[position + 1]
    if second < 0x80:  # most batches are of this size
        return buffer[position] - 0x80 + (second << 7), position + 1
    length, position = read_uvarint(buffer, position)
    return length, position - 1


def read_string_length(buffer: Buffer, position: int) -> tuple[int, int]:
    """A compact string's length plus one, and the position of its last byte."""
    length, position = read_uvarint(buffer, position)
    if length > MAX_STRING_BYTES + 1:
        raise ProtocolError(f"a string of {length - 1} bytes is longer than {MAX_STRING_BYTES}")
    return length, position - 1


def uvarint(value: int) -> bytes:
    """The bytes of an unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _CompactLengths(dict[int, bytes]):
    """The bytes of compact lengths, which say one more; those of a single byte are kept."""

    def __init__(self, longest: int) -> None:
        super().__init__((length, bytes((length + 1,))) for length in range(0x7F))
        self._longest = longest

    def __missing__(self, length: int) -> bytes:
        if length > self._longest:
            raise struct.error(f"{length} bytes are too many")
        return uvarint(length + 1)


compact_lengths = _CompactLengths(0x7FFFFFFF)
compact_string_lengths = _CompactLengths(MAX_STRING_BYTES)


class Spans(dict[int, range]):
    """How often to loop for a length; the short ones are kept, for to make a range costs more than
    to look it up. A compact length is `above` the real one by one."""

    def __init__(self, above: int) -> None:
        super().__init__((length, range(length - above)) for length in range(above, 128))
        self._above = above

    def __missing__(self, length: int) -> range:
        return range(length - self._above)


class Budget:
    """How many elements of arrays, and tagged fields, one message may still have.

    What a few bytes of a frame can ask for costs us much more than them: an empty string is one
    byte, and an object here. Whoever reads large frames counts.
    """

    __slots__ = ("left", "most")

    def __init__(self) -> None:
        self.most = self.left = 0

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ProtocolError(f"more than {self.most} elements in one request")

    def skip_tags(self, buffer: Buffer, position: int) -> int:
        self.take(read_uvarint(buffer, position)[0])
        return skip_tags(buffer, position)


class CountedSpans:
    """`Spans` that take each loop out of a budget."""

    def __init__(self, above: int, budget: Budget) -> None:
        self._above = above
        self.take = budget.take

    def __getitem__(self, length: int) -> range:
        self.take(length - self._above)
        return range(length - self._above)


def skip_tags(buffer: Buffer, position: int) -> int:
    """The position after a tag section of which nothing is known.

    Unknown tagged fields are dropped, not kept: Semel answers messages, it does not forward them.
    """
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
    if position > len(buffer):
        raise truncated()
    return position


def append_tags(out: bytearray, tags: Sequence[tuple[int, bytearray]]) -> None:
    """A tag section: how many, then number, size and content of each, in order of number."""
    out += uvarint(len(tags))
    for tag, content in tags:
        out += uvarint(tag)
        out += uvarint(len(content))
        out += content


class _KnownUuids(dict[bytes, UUID]):
    """UUIDs by their bytes; ones seen lately are shared.

    Topic ids repeat in every Produce and Fetch, and to make a UUID costs a microsecond.
    """

    KEPT = 4096

    def __missing__(self, raw: bytes) -> UUID:
        if len(self) >= self.KEPT:
            self.clear()
        self[raw] = made = UUID(bytes=raw)
        return made


known_uuids = _KnownUuids({bytes(16): NO_UUID})

# Arrays up to this length are packed and unpacked by functions made beforehand.
SHORT_ARRAY = 16


@cache
def array_unpackers(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    """`unpack_from` for arrays of 0, 1, 2, ... elements."""
    return tuple(struct.Struct(f">{n}{code}").unpack_from for n in range(SHORT_ARRAY))


@cache
def array_packers(code: str) -> tuple[Callable[..., bytes], ...]:
    """`pack` for arrays of 0, 1, 2, ... elements."""
    return tuple(struct.Struct(f">{n}{code}").pack for n in range(SHORT_ARRAY))


def append_records(out: bytearray, records: Any) -> None:
    """A records value that is not plainly bytes: other buffers are copied, file regions noted.

    A region is anything with a length that is not a buffer. Where `out` is a Frame it is
    remembered with its position, and the connection sends it from its file.
    """
    try:
        view = memoryview(records)
    except TypeError:
        add_region = getattr(out, "add_region", None)
        if add_region is None:
            out += bytes(records)
        else:
            add_region(records)
    else:
        out += view


def null(field: str) -> ProtocolError:
    return ProtocolError(f"{field} may not be null in this version")


def bad_length(field: str, length: int) -> ProtocolError:
    return ProtocolError(f"{field} has the impossible length {length}")


def bad_tag(tag: int) -> ProtocolError:
    return ProtocolError(f"tagged field {tag} does not end where its size says")


def truncated() -> ProtocolError:
    return ProtocolError("the bytes end before the message does")
