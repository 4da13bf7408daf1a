"""What may be sent: records and offsets are checked before anything changes because of them.

A mistake of the caller raises TypeError or ValueError, at once and in words that name the field.
"""

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from semel.client.machines.types import GroupMetadata, OffsetAndMetadata, TopicPartition

Headers = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]

_LAST_OFFSET = _LAST_TIMESTAMP = (1 << 63) - 1
_LAST_PARTITION = (1 << 31) - 1


def as_bytes(what: str, given: Any, serializer: object = None) -> bytes | None:
    """A key or value; bytes-like ones are copied, since their owner may change them later."""
    if given is None or type(given) is bytes:
        return given
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    kind = type(given).__name__
    if serializer is not None:
        raise TypeError(f"{what}_serializer must return bytes or None, got {kind}")
    raise TypeError(f"{what} must be bytes, got {kind}; encode it or give {what}_serializer")


def as_headers(given: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Pairs of a name and bytes, in order; a mapping's items are such pairs."""
    pairs = given.items() if isinstance(given, Mapping) else given
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise TypeError(f"headers must be a mapping or pairs, got {type(given).__name__}")
    return tuple(_as_header(pair) for pair in pairs)


def _as_header(pair: Any) -> tuple[str, bytes | None]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"a header must be a pair of a name and bytes, got {pair!r}")
    name, value = pair
    if not isinstance(name, str):
        raise TypeError(f"a header's name must be str, got {type(name).__name__}")
    name.encode()  # a name that is no text raises here, while nothing has happened yet
    if isinstance(value, bytearray | memoryview):
        value = bytes(value)
    if value is not None and not isinstance(value, bytes):
        raise TypeError(
            f"the header {name!r} must be bytes or None, got {type(value).__name__}; encode it"
        )
    return name, value


def as_topic(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"topic must be str, got {type(given).__name__}")
    given.encode()
    return given


def as_partition(given: Any) -> int:
    return _as_number("partition", given, _LAST_PARTITION)


def as_timestamp(given: Any) -> int:
    """Milliseconds since 1970; negative ones are refused, as by Java's ProducerRecord."""
    return _as_number("timestamp_ms", given, _LAST_TIMESTAMP)


def as_offsets(given: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """What a group is to commit: for each partition the offset to read next, maybe with a note."""
    if not isinstance(given, Mapping):
        raise TypeError(f"offsets must be a mapping by partition, got {type(given).__name__}")
    return {as_place(place): _as_offset(offset) for place, offset in given.items()}


def as_group(given: Any) -> GroupMetadata:
    if isinstance(given, str):
        return GroupMetadata(given)
    if not isinstance(given, GroupMetadata):
        kind = type(given).__name__
        raise TypeError(f"a group is given by its id or consumer.group_metadata(), got {kind}")
    return given


def as_place(given: Any) -> TopicPartition:
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError(f"a partition must be a TopicPartition or (topic, number), got {given!r}")
    return TopicPartition(as_topic(given[0]), as_partition(given[1]))


def _as_offset(given: Any) -> OffsetAndMetadata:
    if not isinstance(given, OffsetAndMetadata):
        return OffsetAndMetadata(_as_number("an offset", given, _LAST_OFFSET))
    if not isinstance(given.metadata, str):
        raise TypeError(f"an offset's metadata must be str, got {type(given.metadata).__name__}")
    return given._replace(offset=_as_number("an offset", given.offset, _LAST_OFFSET))


def _as_number(what: str, given: Any, last: int) -> int:
    try:
        number = index(given)
    except TypeError:
        raise TypeError(f"{what} must be int, got {type(given).__name__}") from None
    if not 0 <= number <= last:
        raise ValueError(f"{what} must be between 0 and {last}, got {number}")
    return number
