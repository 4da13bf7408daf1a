"""Which partition a record goes to: by its key as Java does, or sticking to one while it fills."""

from functools import lru_cache

from semel.wire.murmur2 import murmur2


@lru_cache(maxsize=65_536)
def partition_for_key(key: bytes, partitions: int) -> int:
    """Kafka's default partitioner: the sign bit of murmur2 is dropped. Frequent keys are cached."""
    return (murmur2(key) & 0x7FFF_FFFF) % partitions


class StickyPartition:
    """For records without a key: one partition of a topic until its batch is full (KIP-480)."""

    __slots__ = ("chosen",)

    def __init__(self) -> None:
        self.chosen = -1

    def choose(self, count: int, dice: float) -> int:
        """`dice`, in [0, 1), picks one of `count`."""
        self.chosen = int(dice * count)
        return self.chosen

    def batch_is_full(self, partition: int) -> None:
        if self.chosen == partition:
            self.chosen = -1
