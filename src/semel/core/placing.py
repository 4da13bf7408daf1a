"""Which partition of an internal topic a transactional id or a group belongs to."""

from functools import lru_cache


def java_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 units, in 32 signed bits."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


@lru_cache(maxsize=1 << 16)
def partition_of(name: str, partition_count: int) -> int:
    """As Kafka's Utils.abs, which takes the smallest integer for 0: it has no positive twin."""
    number = abs(java_hash(name))
    return (0 if number == 1 << 31 else number) % partition_count
