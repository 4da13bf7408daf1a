"""Records ⇄ the bytes of __consumer_offsets, exactly as Kafka 4.3.1 writes them.

A key begins with the kind of the record, a value with the version of its layout (see Kafka's
GroupCoordinatorRecordHelpers for the versions); Kafka's own formatters read ours.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from struct import Struct
from typing import Any

from semel.core.groups.classic.group import ClassicGroup, ClassicGroupMetadata, ClassicMember
from semel.core.groups.consumer.group import (
    Assignment,
    ClassicMetadata,
    ConsumerMember,
    Owned,
    ResolvedRegex,
)
from semel.core.groups.records import (
    ClassicGroupChanged,
    ClassicGroupDeleted,
    ConsumerGroupDeleted,
    CurrentAssignment,
    CurrentAssignmentDeleted,
    GroupEpoch,
    MemberDeleted,
    MemberSubscription,
    OffsetCommitted,
    OffsetDeleted,
    Record,
    RegexResolved,
    TargetAssignment,
    TargetEpoch,
    TimerSet,
    TransactionMarker,
)
from semel.core.groups.states import MemberState
from semel.core.groups.topics import NO_TOPIC_ID
from semel.core.machine import LogEntry
from semel.wire.primitives import uvarint
from semel.wire.records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from semel.wire.records.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

GROUP_METADATA_VERSION = 3
OFFSET_VERSION, OFFSET_VERSION_WITH_EXPIRY = 4, 1

KeyValue = tuple[bytes, bytes | None]

_OFFSET_HEAD = Struct(">hqi")  # version, offset, leader epoch
_TIMESTAMP = Struct(">q")
_NO_TAGS = b"\0"
_TOPIC_ID_TAG = b"\1\0\x10"  # one tag: number 0, of 16 bytes


class GroupCodec:
    """`core.machine.Codec` for the group coordinator's log."""

    @staticmethod
    def encode(record: Record) -> LogEntry | None:
        written = to_bytes(record)
        if written is None:
            return None
        if isinstance(record, OffsetCommitted):
            return LogEntry(*written, record.producer_id, record.producer_epoch)
        return LogEntry(*written)

    @staticmethod
    def decode(entry: LogEntry) -> Record | None:
        if entry.key is None:
            return None
        return from_bytes(entry.key, entry.value, entry.producer_id)

    @staticmethod
    def decode_marker(producer_id: int, producer_epoch: int, commit: bool) -> TransactionMarker:
        return TransactionMarker(producer_id, commit)


def to_bytes(record: Record) -> KeyValue | None:
    """Key and value (None for a tombstone); None for what lives in memory only."""
    match record:
        case OffsetCommitted():
            return _offset(record)
        case TimerSet():
            return None
        case OffsetDeleted(group, topic, partition):
            return _key(OffsetCommitKey(group=group, topic=topic, partition=partition)), None
        case ClassicGroupChanged(written=written):
            return None if written is None else _group_metadata(written)
        case ClassicGroupDeleted(group_id):
            return _key(GroupMetadataKey(group=group_id)), None
    return _consumer_group_bytes(record)


def from_bytes(key: bytes, value: bytes | None, producer_id: int = -1) -> Record | None:
    """None for records this broker has no use for (share and streams groups, Kafka 4.0's own)."""
    match int.from_bytes(key[:2], "big"):
        case 0 | 1:
            return _read_offset(OffsetCommitKey.decode(key, 2, 0)[0], value, producer_id)
        case 2:
            group_id = GroupMetadataKey.decode(key, 2, 0)[0].group
            if value is None:
                return ClassicGroupDeleted(group_id)
            metadata = _read_group_metadata(group_id, value)
            return ClassicGroupChanged(ClassicGroup.from_metadata(metadata), metadata)
        case kind:
            reader = _READERS.get(kind)
            return None if reader is None else reader(key, value)


def _key(message: Any) -> bytes:
    out = bytearray(message.API_KEY.to_bytes(2, "big"))
    message.encode(out, 0)
    return bytes(out)


def _value(message: Any, version: int = 0) -> bytes:
    out = bytearray(version.to_bytes(2, "big"))
    message.encode(out, version)
    return bytes(out)


def _version(value: bytes) -> int:
    return int.from_bytes(value[:2], "big")


def _offset(record: OffsetCommitted) -> KeyValue:
    key = _offset_key(record.group_id, record.topic, record.partition)
    if record.expire_ms != -1:
        return key, _expiring_offset(record)
    metadata = record.metadata.encode()
    # Packed by hand for every commit; the twin is the encoder of OffsetCommitValue.
    return key, b"".join(
        (
            _OFFSET_HEAD.pack(OFFSET_VERSION, record.offset, record.leader_epoch),
            uvarint(len(metadata) + 1),
            metadata,
            _TIMESTAMP.pack(record.commit_ms),
            _NO_TAGS if record.topic_id == NO_TOPIC_ID else _TOPIC_ID_TAG + record.topic_id.bytes,
        )
    )


@lru_cache(maxsize=1 << 14)  # consumers commit the same partitions again and again
def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return _key(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def _expiring_offset(record: OffsetCommitted) -> bytes:
    """Of an old client, which said how long to keep it."""
    value = OffsetCommitValue(
        offset=record.offset,
        leader_epoch=record.leader_epoch,
        metadata=record.metadata,
        commit_timestamp=record.commit_ms,
        expire_timestamp=record.expire_ms,
    )
    return _value(value, OFFSET_VERSION_WITH_EXPIRY)


def _read_offset(key: OffsetCommitKey, value: bytes | None, producer_id: int) -> Record:
    if value is None:
        return OffsetDeleted(key.group, key.topic, key.partition)
    read = OffsetCommitValue.decode(value, 2, _version(value))[0]
    return OffsetCommitted(
        key.group,
        key.topic,
        key.partition,
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_timestamp,
        read.expire_timestamp,
        read.topic_id,
        producer_id,
    )


def _group_metadata(metadata: ClassicGroupMetadata) -> KeyValue:
    value = GroupMetadataValue(
        protocol_type=metadata.protocol_type,
        generation=metadata.generation,
        protocol=metadata.protocol_name,
        leader=metadata.leader,
        current_state_timestamp=metadata.state_since_ms,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols[0][1],
                assignment=member.assignment,
            )
            for member in metadata.members
        ],
    )
    return _key(GroupMetadataKey(group=metadata.group_id)), _value(value, GROUP_METADATA_VERSION)


def _read_group_metadata(group_id: str, value: bytes) -> ClassicGroupMetadata:
    read = GroupMetadataValue.decode(value, 2, _version(value))[0]
    return ClassicGroupMetadata(
        group_id,
        read.protocol_type,
        read.generation,
        read.protocol,
        read.leader,
        read.current_state_timestamp,
        tuple(_read_classic_member(member, read.protocol or "") for member in read.members),
    )


def _read_classic_member(member: Any, protocol_name: str) -> ClassicMember:
    has_rebalance_timeout = member.rebalance_timeout != -1
    return ClassicMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout if has_rebalance_timeout else member.session_timeout,
        member.session_timeout,
        ((protocol_name, bytes(member.subscription)),),
        bytes(member.assignment),
    )


def _consumer_group_bytes(record: Record) -> KeyValue | None:
    match record:
        case TargetAssignment(group_id, member_id, partitions):  # the most: one join changes many
            target_key = _member_key(ConsumerGroupTargetAssignmentMemberKey, group_id, member_id)
            return target_key, None if partitions is None else _target_value(partitions)
        case CurrentAssignment(group_id, member):
            return _current_key(group_id, member.member_id), _current_value(member)
        case GroupEpoch(group_id, epoch, metadata_hash):
            group_value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
            return _group_key(ConsumerGroupMetadataKey, group_id), _value(group_value)
        case ConsumerGroupDeleted(group_id):
            return _group_key(ConsumerGroupMetadataKey, group_id), None
        case MemberSubscription(group_id, member):
            key = _member_key(ConsumerGroupMemberMetadataKey, group_id, member.member_id)
            return key, _value(_member_value(member))
        case MemberDeleted(group_id, member_id):
            return _member_key(ConsumerGroupMemberMetadataKey, group_id, member_id), None
        case TargetEpoch(group_id, target_epoch, computed_ms):
            return _group_key(ConsumerGroupTargetAssignmentMetadataKey, group_id), (
                None if target_epoch is None else _target_epoch_value(target_epoch, computed_ms)
            )
        case CurrentAssignmentDeleted(group_id, member_id):
            return _current_key(group_id, member_id), None
        case RegexResolved(group_id, regex, resolved):
            regex_key = ConsumerGroupRegularExpressionKey(
                group_id=group_id, regular_expression=regex
            )
            return _key(regex_key), None if resolved is None else _regex_value(resolved)
    return None


def _member_value(member: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    classic = None
    if member.classic is not None:
        classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )


def _target_epoch_value(epoch: int, computed_ms: int) -> bytes:
    return _value(
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=computed_ms
        )
    )


def _target_value(partitions: Assignment) -> bytes:
    topic_partition = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    return _value(
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                topic_partition(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in partitions.items()
            ]
        )
    )


def _current_key(group_id: str, member_id: str) -> bytes:
    return _member_key(ConsumerGroupCurrentMemberAssignmentKey, group_id, member_id)


@lru_cache(maxsize=1 << 14)  # members are written about again and again
def _member_key(kind: Callable[..., Any], group_id: str, member_id: str) -> bytes:
    return _key(kind(group_id=group_id, member_id=member_id))


@lru_cache(maxsize=1 << 10)
def _group_key(kind: Callable[..., Any], group_id: str) -> bytes:
    return _key(kind(group_id=group_id))


def _current_value(member: ConsumerMember) -> bytes:
    return _value(
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=int(member.state),
            assigned_partitions=list(_owned(member.assigned)),
            partitions_pending_revocation=list(_owned(member.revoking)),
        )
    )


def _owned(owned: Owned) -> Iterator[Any]:
    for topic_id, partitions in owned.items():
        numbers = sorted(partitions)
        yield ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic_id,
            partitions=numbers,
            assignment_epochs=[partitions[number] for number in numbers],
        )


def _regex_value(resolved: ResolvedRegex) -> bytes:
    return _value(
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.topics_version,
            timestamp=resolved.resolved_ms,
        )
    )


def _read_epoch(key: bytes, value: bytes | None) -> Record:
    group_id = ConsumerGroupMetadataKey.decode(key, 2, 0)[0].group_id
    if value is None:
        return ConsumerGroupDeleted(group_id)
    read = ConsumerGroupMetadataValue.decode(value, 2, 0)[0]
    return GroupEpoch(group_id, read.epoch, read.metadata_hash)


def _read_member(key: bytes, value: bytes | None) -> Record:
    named = ConsumerGroupMemberMetadataKey.decode(key, 2, 0)[0]
    if value is None:
        return MemberDeleted(named.group_id, named.member_id)
    read = ConsumerGroupMemberMetadataValue.decode(value, 2, 0)[0]
    classic = read.classic_member_metadata
    member = ConsumerMember(
        named.member_id,
        instance_id=read.instance_id,
        rack_id=read.rack_id,
        rebalance_timeout_ms=read.rebalance_timeout_ms,
        client_id=read.client_id,
        client_host=read.client_host,
        topic_names=frozenset(read.subscribed_topic_names),
        topic_regex=read.subscribed_topic_regex,
        server_assignor=read.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols),
        ),
    )
    return MemberSubscription(named.group_id, member)


def _read_target_epoch(key: bytes, value: bytes | None) -> Record:
    group_id = ConsumerGroupTargetAssignmentMetadataKey.decode(key, 2, 0)[0].group_id
    if value is None:
        return TargetEpoch(group_id, None)
    read = ConsumerGroupTargetAssignmentMetadataValue.decode(value, 2, 0)[0]
    return TargetEpoch(group_id, read.assignment_epoch, read.assignment_timestamp)


def _read_target(key: bytes, value: bytes | None) -> Record:
    named = ConsumerGroupTargetAssignmentMemberKey.decode(key, 2, 0)[0]
    if value is None:
        return TargetAssignment(named.group_id, named.member_id, None)
    read = ConsumerGroupTargetAssignmentMemberValue.decode(value, 2, 0)[0]
    partitions = {t.topic_id: frozenset(t.partitions) for t in read.topic_partitions}
    return TargetAssignment(named.group_id, named.member_id, partitions)


def _read_current(key: bytes, value: bytes | None) -> Record:
    named = ConsumerGroupCurrentMemberAssignmentKey.decode(key, 2, 0)[0]
    if value is None:
        return CurrentAssignmentDeleted(named.group_id, named.member_id)
    read = ConsumerGroupCurrentMemberAssignmentValue.decode(value, 2, 0)[0]
    is_known = read.state in MemberState.__members__.values()
    member = ConsumerMember(
        named.member_id,
        read.member_epoch,
        read.previous_member_epoch,
        MemberState(read.state) if is_known else MemberState.UNKNOWN,
        assigned=_read_owned(read.assigned_partitions, read.member_epoch),
        revoking=_read_owned(read.partitions_pending_revocation, read.member_epoch),
    )
    return CurrentAssignment(named.group_id, member)


def _read_owned(topics: Iterable[Any], member_epoch: int) -> Owned:
    """Before 4.2 the epochs of partitions were not written: the member's own must do."""
    return {
        topic.topic_id: dict(
            zip(
                topic.partitions,
                topic.assignment_epochs or [member_epoch] * len(topic.partitions),
                strict=True,
            )
        )
        for topic in topics
    }


def _read_regex(key: bytes, value: bytes | None) -> Record:
    named = ConsumerGroupRegularExpressionKey.decode(key, 2, 0)[0]
    if value is None:
        return RegexResolved(named.group_id, named.regular_expression, None)
    read = ConsumerGroupRegularExpressionValue.decode(value, 2, 0)[0]
    resolved = ResolvedRegex(frozenset(read.topics), read.version, read.timestamp)
    return RegexResolved(named.group_id, named.regular_expression, resolved)


_READERS = {
    3: _read_epoch,
    5: _read_member,
    6: _read_target_epoch,
    7: _read_target,
    8: _read_current,
    16: _read_regex,
}
