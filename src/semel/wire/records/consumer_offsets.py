"""The records of `__consumer_offsets` that every group has: offsets, and classic groups.

The key's bytes begin with its type (API_KEY, two bytes), the value's with its version (two
bytes); neither is part of these messages. Offsets: 1 had an expiry of its own, 3 added the leader
epoch, 4 is flexible with the topic id as a tag. Groups: 1 added the rebalance timeout, 2 the time
of the last change, 3 static members, 4 is flexible. Kafka 4.3.1 writes version 4 of offsets (1
where a client asked for an expiry) and 3 of groups.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, binary, int32, int64, string, uuid


class OffsetCommitKey(Message, api_key=1, versions="0"):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible="4+"):
    offset: int = int64()
    leader_epoch: int = int32(-1, versions="3+", ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(-1, versions="1", ignorable=True)
    topic_id: UUID = uuid(versions="4+", tag=0, ignorable=True)


class GroupMetadataKey(Message, api_key=2, versions="0"):
    group: str = string()


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible="4+"):
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(-1, versions="2+", ignorable=True)
    members: list[GroupMetadataValue.MemberMetadata] = array("MemberMetadata")

    class MemberMetadata(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(None, versions="3+", nullable="0+", ignorable=True)
        client_id: str = string()
        client_host: str = string()
        rebalance_timeout: int = int32(-1, versions="1+", ignorable=True)
        session_timeout: int = int32()
        subscription: bytes = binary()
        assignment: bytes = binary()
