"""Which partition a record goes to: by its key as Java does, or sticking to one while it fills."""

from functools import lru_cache

from semel.wire.murmur2 import murmur2


@lru_cache(maxsize=65_536)
def partition_for_key(key: bytes, partitions: int) -> int:
    """Kafka's default partitioner: the sign bit of murmur2 is dropped. Frequent keys are cached."""
    return (murmur2(key) & 0x7FFF_FFFF) % partitions


class StickyPartitions:
    """For records without a key: one partition per topic until its batch is sent (KIP-480)."""

    def __init__(self) -> None:
        self._chosen: dict[str, int] = {}

    def choose(self, topic: str, partitions: int, dice: float) -> int:
        """`dice`, in [0, 1), picks a new one where none is chosen."""
        chosen = self._chosen.get(topic)
        if chosen is None or chosen >= partitions:
            chosen = self._chosen[topic] = int(dice * partitions)
        return chosen

    def current(self, topic: str) -> int | None:
        return self._chosen.get(topic)

    def batch_is_full(self, topic: str, partition: int) -> None:
        if self._chosen.get(topic) == partition:
            del self._chosen[topic]
