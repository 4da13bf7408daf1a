"""The hash by which Kafka's default partitioner places a key."""


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """Kafka's 32-bit MurmurHash2 (org.apache.kafka.common.utils.Utils.murmur2), as an unsigned."""
    length = len(data)
    mixed = 0x9747B28C ^ length
    tail = length & ~3
    for position in range(0, tail, 4):
        word = int.from_bytes(data[position : position + 4], "little") * 0x5BD1E995 & 0xFFFF_FFFF
        word = (word ^ word >> 24) * 0x5BD1E995 & 0xFFFF_FFFF
        mixed = mixed * 0x5BD1E995 & 0xFFFF_FFFF ^ word
    if length > tail:
        mixed ^= int.from_bytes(data[tail:], "little")
        mixed = mixed * 0x5BD1E995 & 0xFFFF_FFFF
    mixed = (mixed ^ mixed >> 13) * 0x5BD1E995 & 0xFFFF_FFFF
    return mixed ^ mixed >> 15
