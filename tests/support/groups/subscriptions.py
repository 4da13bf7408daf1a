"""What a classic consumer tells its group: the topics it wants, and the partitions it has."""

from semel.core.groups.classic.embedded import Partitions
from semel.wire.records.consumer_protocol import ConsumerProtocolSubscription


def write_subscription(topics: list[str], owned: Partitions | None = None) -> bytes:
    subscription = ConsumerProtocolSubscription(
        topics=topics,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in (owned or {}).items()
        ],
    )
    out = bytearray((1).to_bytes(2, "big"))
    subscription.encode(out, 1)
    return bytes(out)
