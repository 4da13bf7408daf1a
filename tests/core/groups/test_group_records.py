"""Records of __consumer_offsets: Kafka's kinds and versions, and back to the same record."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.groups.bench import topic_id

from semel.core.groups.classic.group import ClassicGroup, ClassicGroupMetadata, ClassicMember
from semel.core.groups.consumer.group import ClassicMetadata, ConsumerMember, ResolvedRegex
from semel.core.groups.encoding import GroupCodec, from_bytes, to_bytes
from semel.core.groups.records import (
    ClassicGroupChanged,
    ClassicGroupDeleted,
    ConsumerGroupDeleted,
    CurrentAssignment,
    CurrentAssignmentDeleted,
    GroupEpoch,
    MemberDeleted,
    MemberSubscription,
    MetadataChecked,
    OffsetCommitted,
    OffsetDeleted,
    RegexResolved,
    SettingsSeen,
    TargetAssignment,
    TargetEpoch,
    TimerSet,
    TopicsSeen,
    TransactionMarker,
)
from semel.core.groups.settings import GroupSettings
from semel.core.groups.states import MemberState
from semel.core.groups.topics import NO_TOPIC_ID, Topics
from semel.core.machine import LogEntry
from semel.wire.records.consumer_offsets import OffsetCommitValue

T = topic_id("t")
SUBSCRIBED = ConsumerMember(
    "m", instance_id="i", rack_id="r", rebalance_timeout_ms=5, client_id="c", client_host="/h",
    topic_names=frozenset({"t", "u"}), topic_regex="x.*", server_assignor="range",
    classic=ClassicMetadata(9, (("range", b"?"),)),
)  # fmt: skip
MOVED = ConsumerMember(
    "m", 7, 6, MemberState.UNREVOKED_PARTITIONS, assigned={T: {0: 3, 1: 5}}, revoking={T: {2: 3}}
)
METADATA = ClassicGroupMetadata(
    "g", "consumer", 3, "range", "m", 99,
    (ClassicMember("m", "i", "c", "/h", 60_000, 45_000, (("range", b"sub"),), b"mine"),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("record", "kind", "version"),
    [
        (OffsetCommitted("g", "t", 1, 5, 2, "meta", 99, -1, T), 1, 4),
        (OffsetCommitted("g", "t", 1, 5, -1, "", 99, 1_000), 1, 1),
        (OffsetDeleted("g", "t", 1), 1, None),
        (ClassicGroupChanged(ClassicGroup.from_metadata(METADATA), METADATA), 2, 3),
        (ClassicGroupDeleted("g"), 2, None),
        (GroupEpoch("g", 4, -12), 3, 0),
        (ConsumerGroupDeleted("g"), 3, None),
        (MemberSubscription("g", SUBSCRIBED), 5, 0),
        (MemberSubscription("g", ConsumerMember("m")), 5, 0),
        (MemberDeleted("g", "m"), 5, None),
        (TargetEpoch("g", 4, 99), 6, 0),
        (TargetEpoch("g", None), 6, None),
        (TargetAssignment("g", "m", {T: frozenset({0, 2})}), 7, 0),
        (TargetAssignment("g", "m", None), 7, None),
        (CurrentAssignment("g", MOVED), 8, 0),
        (CurrentAssignmentDeleted("g", "m"), 8, None),
        (RegexResolved("g", "x.*", ResolvedRegex(frozenset({"x1", "x2"}), 3, 99)), 16, 0),
        (RegexResolved("g", "x.*", None), 16, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_record_has_kafkas_kind_and_version_and_comes_back(record, kind, version):
    key, value = to_bytes(record)
    assert int.from_bytes(key[:2], "big") == kind
    assert (None if value is None else int.from_bytes(value[:2], "big")) == version
    assert from_bytes(key, value) == record


@pytest.mark.parametrize(
    "record",
    [
        TransactionMarker(7, True),
        TimerSet(("join", "g"), None),
        TopicsSeen(Topics()),
        SettingsSeen(GroupSettings()),
        MetadataChecked("g", 1),
        ClassicGroupChanged(ClassicGroup("g")),
    ],
    ids=lambda record: type(record).__name__,
)
def test_what_lives_in_memory_only_has_no_bytes(record):
    assert to_bytes(record) is None


def test_offsets_of_a_transaction_are_written_in_its_producers_name():
    record = OffsetCommitted("g", "t", 0, 5, producer_id=7, producer_epoch=2)
    entry = GroupCodec.encode(record)
    assert (entry.producer_id, entry.producer_epoch) == (7, 2)
    assert GroupCodec.decode(entry).producer_id == 7


def test_a_marker_in_the_log_becomes_the_end_of_the_transaction():
    assert GroupCodec.decode_marker(7, 2, True) == TransactionMarker(7, True)


@pytest.mark.parametrize("kind", [4, 9, 17, 999])
def test_records_we_have_no_use_for_are_left_alone(kind):
    assert GroupCodec.decode(LogEntry(kind.to_bytes(2, "big") + b"\0\1g", b"\0\0")) is None
    assert GroupCodec.decode(LogEntry(None, b"x")) is None


def test_partitions_written_before_their_epochs_were_have_the_members_epoch():
    from semel.wire.records.consumer_groups import (
        ConsumerGroupCurrentMemberAssignmentValue as Value,
    )

    owned = Value.TopicPartitions(topic_id=T, partitions=[0, 1])
    out = bytearray(2)
    Value(member_epoch=7, previous_member_epoch=6, assigned_partitions=[owned]).encode(out, 0)
    key, _ = to_bytes(CurrentAssignmentDeleted("g", "m"))
    assert from_bytes(key, bytes(out)).member.assigned == {T: {0: 7, 1: 7}}


@given(group_id=st.text(max_size=40), member_id=st.text(max_size=40))
def test_a_members_key_is_what_its_class_writes(group_id, member_id):
    from semel.wire.records.consumer_groups import ConsumerGroupCurrentMemberAssignmentKey as Key

    expected = bytearray(Key.API_KEY.to_bytes(2, "big"))
    Key(group_id=group_id, member_id=member_id).encode(expected, 0)
    assert to_bytes(CurrentAssignmentDeleted(group_id, member_id))[0] == expected


@given(
    offset=st.integers(0, 2**62),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=300),
    commit_ms=st.integers(0, 2**62),
    topic_id=st.just(NO_TOPIC_ID) | st.uuids(),
)
def test_an_offset_packed_by_hand_is_what_the_general_encoder_writes(
    offset, leader_epoch, metadata, commit_ms, topic_id
):
    record = OffsetCommitted("g", "t", 0, offset, leader_epoch, metadata, commit_ms, -1, topic_id)
    general = OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_ms,
        topic_id=topic_id,
    )
    expected = bytearray(b"\0\4")
    general.encode(expected, 4)
    assert to_bytes(record)[1] == expected
