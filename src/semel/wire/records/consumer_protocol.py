"""What members of a classic group tell each other inside JoinGroup and SyncGroup.

The broker passes these on unread; consumers write and read them, each with its version (two
bytes) before it. A reader that meets a newer version reads it as the newest it knows.
Subscriptions: 1 added the partitions owned, for cooperative assignors; 2 the generation they are
from; 3 the rack. Assignments were only renumbered along with them.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, int32, string


class ConsumerProtocolSubscription(Message, versions="0-3"):
    topics: list[str] = array(string)
    user_data: bytes | None = binary(None, nullable="0+")
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = array(
        "TopicPartition", versions="1+", ignorable=True
    )
    generation_id: int = int32(-1, versions="2+", ignorable=True)
    rack_id: str | None = string(None, versions="3+", nullable="0+", ignorable=True)

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = array("TopicPartition")
    user_data: bytes | None = binary(None, nullable="0+")

    class TopicPartition(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)
