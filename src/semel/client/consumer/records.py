"""Records as a consumer gives them out, and how their bytes become keys and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from semel.client.machines.types import TopicPartition
from semel.errors import DeserializationError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # What a deserializer returns; bytes where there is none.
    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:  # defaults of type variables came with Python 3.13
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")


class ConsumerRecord(NamedTuple, Generic[K, V]):
    """A record as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970: when it was made, or, where the topic says so, when it was written.
    """
    key: K | None
    value: V | None
    """None is a tombstone: in a compacted topic the key is deleted."""
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it was read, as `seek`, `commit` and others take it."""
        return TopicPartition(self.topic, self.partition)


class Deserializers(NamedTuple):
    """What makes keys and values of bytes; None leaves them as they are. Null stays None."""

    key: Callable[[bytes], Any] | None = None
    value: Callable[[bytes], Any] | None = None

    def read(self, record: ConsumerRecord[bytes, bytes]) -> ConsumerRecord[Any, Any]:
        field = "key"
        key: Any = record.key
        value: Any = record.value
        try:
            if self.key is not None and key is not None:
                key = self.key(key)
            field = "value"
            if self.value is not None and value is not None:
                value = self.value(value)
        except Exception as why:
            raise DeserializationError(
                f"the {field} at offset {record.offset} of {record.topic_partition} cannot be "
                f"deserialized: {type(why).__name__}: {why}. Mend the {field}_deserializer, or "
                "skip the record: consumer.seek(error.partition, error.offset + 1)",
                record,
            ) from why
        return ConsumerRecord(*record[:4], key, value, record.headers)
