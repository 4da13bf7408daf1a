"""The group APIs over the wire: what the handlers check and translate, version by version."""

import asyncio

import pytest

from semel.core.groups.topics import NO_TOPIC_ID
from semel.store.interface import StorageError
from semel.wire.errors import ErrorCode
from semel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from semel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from semel.wire.messages.delete_groups import DeleteGroupsRequest
from semel.wire.messages.describe_groups import DescribeGroupsRequest
from semel.wire.messages.heartbeat import HeartbeatRequest
from semel.wire.messages.leave_group import LeaveGroupRequest
from semel.wire.messages.list_groups import ListGroupsRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_delete import OffsetDeleteRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.messages.sync_group import SyncGroupRequest


@pytest.fixture
async def topic(speak):
    return await speak.create("t")


# The classic protocol


@pytest.mark.parametrize("version", range(10))
async def test_a_lone_member_joins_syncs_beats_and_leaves_in_every_version(speak, version):
    joined = await speak.join(version=version)
    assert joined.error_code == 0
    assert joined.leader == joined.member_id
    assert joined.protocol_name == "range"
    synced = await speak.sync(joined, version=min(version, 5))
    assert synced.assignment == joined.member_id.encode()
    beat = HeartbeatRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id
    )
    assert (await speak.ask(beat, min(version, 4))).error_code == 0
    leave = LeaveGroupRequest(group_id="g", member_id=joined.member_id)
    leave_version = min(version, 5)
    if leave_version >= 3:
        leave = LeaveGroupRequest(
            group_id="g", members=[LeaveGroupRequest.MemberIdentity(member_id=joined.member_id)]
        )
    left = await speak.ask(leave, leave_version)
    assert left.error_code == 0
    assert all(member.error_code == 0 for member in left.members)


async def test_joins_that_wait_are_answered_when_the_others_have_come(
    broker, speak, speak_to, parked
):
    first = await speak.join()
    await speak.sync(first)
    other = await speak_to(broker)
    waiting = asyncio.ensure_future(other.join())
    await parked(broker, 2)
    again = asyncio.ensure_future(speak.ask(speak.join_request(member=first.member_id), 9))
    one, two = await again, await waiting
    assert one.generation_id == two.generation_id == first.generation_id + 1
    assert len(one.members) == 2
    follower = asyncio.ensure_future(other.sync(two))
    assert (await speak.sync(one)).assignment == one.member_id.encode()
    assert (await follower).assignment == two.member_id.encode()


async def test_member_ids_begin_with_the_client_id_or_the_instance_id(speak):
    assert (await speak.join()).member_id.startswith("tester-")
    static = await speak.join("h", group_instance_id="static")
    assert static.member_id.startswith("static-")


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
async def test_a_session_timeout_out_of_bounds_is_refused(speak, timeout_ms):
    response = await speak.join(session_timeout_ms=timeout_ms)
    assert response.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


async def test_an_empty_group_id_is_refused(speak):
    assert (await speak.join("")).error_code == ErrorCode.INVALID_GROUP_ID
    assert (await speak.ask(HeartbeatRequest(), 4)).error_code == ErrorCode.INVALID_GROUP_ID
    assert (await speak.ask(LeaveGroupRequest(), 5)).error_code == ErrorCode.INVALID_GROUP_ID
    sync = SyncGroupRequest(protocol_type="consumer", protocol_name="range")
    assert (await speak.ask(sync, 5)).error_code == ErrorCode.INVALID_GROUP_ID


async def test_sync_must_name_its_protocol_since_version_5(speak):
    request = SyncGroupRequest(group_id="g")
    answer = await speak.ask(request, 5)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert (await speak.ask(request, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_an_old_leave_of_a_stranger_says_so_at_the_top(speak):
    answer = await speak.ask(LeaveGroupRequest(group_id="g", member_id="x"), 2)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_silent_member_is_removed_by_the_clock(start_broker, speak_to):
    broker = await start_broker(**{"group.min.session.timeout.ms": 1})
    speak = await speak_to(broker)
    joined = await speak.join(session_timeout_ms=20)
    await speak.sync(joined)
    while True:  # pytest's timeout ends a wait in vain
        [group] = (await speak.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
        if group.group_state == "Empty":
            break
        assert group.group_state == "Stable"


# Offsets


@pytest.mark.parametrize("version", range(2, 10))
async def test_offsets_are_committed_in_every_version(speak, topic, version):
    assert await speak.commit(version, version=version) == 0
    assert (await speak.fetch()).committed_offset == version


async def test_topics_are_named_by_id_in_version_10(speak, topic):
    def request(topic_id):
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=1, committed_offset=7, committed_leader_epoch=3, committed_metadata="m"
        )
        wanted = OffsetCommitRequest.OffsetCommitRequestTopic(
            topic_id=topic_id, partitions=[partition]
        )
        return OffsetCommitRequest(group_id="g", topics=[wanted])

    [done] = (await speak.ask(request(topic), 10)).topics
    assert (done.topic_id, done.partitions[0].error_code) == (topic, 0)
    [unknown] = (await speak.ask(request(NO_TOPIC_ID), 10)).topics
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    def fetch(topic_id):
        wanted = OffsetFetchRequest.OffsetFetchRequestTopics(
            topic_id=topic_id, partition_indexes=[1]
        )
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[wanted])
        return OffsetFetchRequest(groups=[group])

    [[found]] = [g.topics for g in (await speak.ask(fetch(topic), 10)).groups]
    assert found.topic_id == topic
    partition = found.partitions[0]
    assert (partition.committed_offset, partition.committed_leader_epoch) == (7, 3)
    assert partition.metadata == "m"
    [[unknown]] = [g.topics for g in (await speak.ask(fetch(NO_TOPIC_ID), 10)).groups]
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_offsets_of_what_does_not_exist_are_refused(speak, topic):
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await speak.commit(1, topic="nowhere") == unknown
    assert await speak.commit(1, partition=2) == unknown
    assert await speak.commit(1, partition=-1) == unknown


@pytest.mark.parametrize("version", range(1, 8))
async def test_one_group_is_fetched_in_the_old_way(speak, topic, version):
    await speak.commit(5)
    wanted = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])
    answer = await speak.ask(OffsetFetchRequest(group_id="g", topics=[wanted]), version)
    assert answer.error_code == 0
    assert [p.committed_offset for p in answer.topics[0].partitions] == [5, -1]


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
async def test_all_offsets_of_a_group_are_fetched(speak, topic, version):
    await speak.commit(5)
    await speak.commit(6, partition=1)
    request = OffsetFetchRequest(group_id="g", topics=None)
    if version >= 8:
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
        request = OffsetFetchRequest(groups=[group])
    answer = await speak.ask(request, version)
    topics = answer.topics if version < 8 else answer.groups[0].topics
    assert [p.committed_offset for p in topics[0].partitions] == [5, 6]


async def test_several_groups_are_fetched_at_once(speak, topic):
    await speak.commit(5, group="g")
    await speak.commit(6, group="h")
    groups = [
        OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in "ghi"
    ]
    answer = await speak.ask(OffsetFetchRequest(groups=groups), 9)
    found = {
        g.group_id: [p.committed_offset for t in g.topics for p in t.partitions]
        for g in answer.groups
    }
    assert found == {"g": [5], "h": [6], "i": []}


async def test_offsets_are_deleted(speak, topic):
    await speak.commit(5)

    def request(*partitions, name="t", group="g"):
        wanted = OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name=name,
            partitions=[
                OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=p)
                for p in partitions
            ],
        )
        return OffsetDeleteRequest(group_id=group, topics=[wanted])

    answer = await speak.ask(request(0, 9), 0)
    errors = [p.error_code for p in answer.topics[0].partitions]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (await speak.fetch()).committed_offset == -1
    missing = await speak.ask(request(0, group="nowhere"), 0)
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_the_offsets_topic_is_made_when_the_first_group_comes(broker, speak, topic):
    assert "__consumer_offsets" not in broker.catalog.topics
    assert await speak.commit(1) == 0, "and the client sees no error for it"
    offsets = broker.catalog.topics["__consumer_offsets"]
    assert (offsets.partition_count, offsets.config["cleanup.policy"]) == (50, ("compact",))


async def test_a_deleted_topic_loses_its_offsets(broker, speak, topic, until):
    await speak.commit(5)
    broker.catalog.delete_topic("t")
    await speak.create("t")
    assert (await speak.fetch()).committed_offset == -1


# Administration


async def test_groups_are_listed_described_and_deleted(speak, topic):
    joined = await speak.join("live")
    await speak.sync(joined, "live")
    await speak.commit(5, group="simple")

    listed = (await speak.ask(ListGroupsRequest(), 5)).groups
    assert {(g.group_id, g.group_state, g.group_type) for g in listed} == {
        ("live", "Stable", "classic"),
        ("simple", "Empty", "classic"),
    }
    stable = (await speak.ask(ListGroupsRequest(states_filter=["STABLE"]), 5)).groups
    assert [g.group_id for g in stable] == ["live"]
    consumers = (await speak.ask(ListGroupsRequest(types_filter=["consumer"]), 5)).groups
    assert consumers == []

    request = DescribeGroupsRequest(groups=["live", "nowhere"], include_authorized_operations=True)
    live, nowhere = (await speak.ask(request, 6)).groups
    assert (live.group_state, live.protocol_data, len(live.members)) == ("Stable", "range", 1)
    assert live.members[0].client_host == "/127.0.0.1"
    assert live.authorized_operations > 0
    assert nowhere.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert nowhere.error_message == "Group nowhere not found."
    [dead] = (await speak.ask(DescribeGroupsRequest(groups=["nowhere"]), 5)).groups
    assert (dead.error_code, dead.group_state) == (0, "Dead")

    names = ["live", "simple", "nowhere", "simple"]
    results = (await speak.ask(DeleteGroupsRequest(groups_names=names), 2)).results
    assert {r.group_id: r.error_code for r in results} == {
        "live": ErrorCode.NON_EMPTY_GROUP,
        "simple": 0,
        "nowhere": ErrorCode.GROUP_ID_NOT_FOUND,
    }


def commit_of(group, offset, partition=0, **fields):
    wanted = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[wanted])
    return OffsetCommitRequest(group_id=group, topics=[topic], **fields)


async def test_commits_sent_without_waiting_are_answered_each_in_its_turn(broker, speak, topic):
    assert await speak.commit(1) == 0
    log = broker.groups.shard_of("g").partition.log
    start = log.next_offset
    for group, offset, partition in [("g", 2, 0), ("g", 3, 7), ("g", 4, 0), ("h", 5, 0)]:
        speak.ask.send(commit_of(group, offset, partition), 9)
    answers = [await speak.ask.receive(8, 9) for _ in range(4)]
    errors = [answer.topics[0].partitions[0].error_code for answer in answers]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, 0]
    assert log.next_offset >= start + 2
    assert (await speak.fetch()).committed_offset == 4


# The consumer protocol


def heartbeat(**fields):
    given = {
        "group_id": "g", "member_id": "m", "rebalance_timeout_ms": 10_000,
        "subscribed_topic_names": ["t"], "topic_partitions": [],
    }  # fmt: skip
    return ConsumerGroupHeartbeatRequest(**(given | fields))


async def test_consumers_that_join_in_one_go_are_assigned_once(broker, speak, topic):
    await speak.ask(heartbeat(group_id="other"), 1)  # the coordinator is there
    for member in ("a", "b"):
        speak.ask.send(heartbeat(member_id=member), 1)
    joined = [await speak.ask.receive(68, 1) for _ in range(2)]
    assert [answer.error_code for answer in joined] == [0, 0]
    assert {answer.member_epoch for answer in joined} == {3}
    given = [answer.assignment.topic_partitions[0].partitions for answer in joined]
    assert sorted(given) == [[0], [1]]


async def test_a_consumer_that_goes_on_before_its_join_is_answered_is_a_member(speak, topic):
    speak.ask.send(heartbeat(), 1)
    speak.ask.send(heartbeat(member_epoch=2, topic_partitions=None), 1)
    speak.ask.send(heartbeat(), 1)
    speak.ask.send(commit_of("g", 1, member_id="m", generation_id_or_member_epoch=2), 9)
    answers = [await speak.ask.receive(68, 1) for _ in range(3)]
    assert [(answer.error_code, answer.member_epoch) for answer in answers] == [(0, 2)] * 3
    assert (await speak.ask.receive(8, 9)).topics[0].partitions[0].error_code == 0


async def test_joins_are_refused_together_where_there_is_no_coordinator(broker, speak, topic):
    await speak.ask(heartbeat(), 1)
    for shard in broker.groups.shards:
        shard.partition.log.offline = StorageError("gone")
    for member in ("a", "b"):
        speak.ask.send(heartbeat(member_id=member), 1)
    answers = [await speak.ask.receive(68, 1) for _ in range(2)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NOT_COORDINATOR}


async def test_a_consumer_joins_beats_and_is_described(speak, topic):
    joined = await speak.ask(heartbeat(), 1)
    assert (joined.error_code, joined.member_id) == (0, "m")
    [assigned] = joined.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (topic, [0, 1])
    quiet = heartbeat(
        member_epoch=joined.member_epoch, rebalance_timeout_ms=-1, subscribed_topic_names=None,
        topic_partitions=None,
    )  # fmt: skip
    assert (await speak.ask(quiet, 1)).assignment is None

    request = ConsumerGroupDescribeRequest(
        group_ids=["g", "nowhere"], include_authorized_operations=True
    )
    described, nowhere = (await speak.ask(request, 1)).groups
    assert (described.group_state, described.assignor_name) == ("Stable", "uniform")
    [member] = described.members
    assert (member.member_id, member.member_type) == ("m", 1)
    assert member.target_assignment.topic_partitions[0].topic_name == "t"
    assert described.authorized_operations > 0
    assert nowhere.error_code == ErrorCode.GROUP_ID_NOT_FOUND

    left = await speak.ask(heartbeat(member_epoch=-1), 1)
    assert (left.error_code, left.member_epoch) == (0, -1)


async def test_a_version_0_client_is_given_a_member_id(speak, topic):
    joined = await speak.ask(heartbeat(member_id=""), 0)
    assert joined.error_code == 0
    assert len(joined.member_id) == 22


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
async def test_a_heartbeat_that_makes_no_sense_is_refused_in_kafkas_words(speak, fields, message):
    response = await speak.ask(heartbeat(**fields), 1)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message == message


async def test_who_speaks_as_a_member_in_epoch_0_is_sent_to_join_again(speak, topic):
    """As librdkafka does when it was unsubscribed while it gave up partitions. It dies of Kafka's
    INVALID_REQUEST, and recovers from being fenced."""
    await speak.ask(heartbeat(), 1)
    await speak.ask(heartbeat(member_epoch=-1), 1)
    lost = heartbeat(rebalance_timeout_ms=-1, topic_partitions=None)
    response = await speak.ask(lost, 1)
    assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "to join, it must say all that a join says" in response.error_message
    assert (await speak.ask(heartbeat(), 1)).error_code == 0


async def test_a_groups_own_assignment_interval_is_obeyed(speak, broker, topic):
    broker.catalog.configure("group", "g", {"consumer.assignment.interval.ms": "9000"})
    await speak.ask(heartbeat(member_id="a"), 1)
    late = await speak.ask(heartbeat(member_id="b"), 1)
    assert late.assignment.topic_partitions == []
    assert late.heartbeat_interval_ms == 5000  # the usual one comes first
    group = broker.groups.shard_of("g").machine.state.groups["g"]
    assert group.assignment_epoch < group.epoch
    broker.catalog.configure("group", "g", {"consumer.assignment.interval.ms": "0"})
    await speak.ask(heartbeat(member_id="c"), 1)
    assert group.assignment_epoch == group.epoch


async def test_an_unknown_assignor_is_refused(speak):
    response = await speak.ask(heartbeat(server_assignor="magic"), 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


async def test_a_broker_may_speak_the_classic_protocol_only(start_broker, speak_to):
    broker = await start_broker(**{"group.coordinator.rebalance.protocols": "classic"})
    speak = await speak_to(broker)
    answer = await speak.ask(heartbeat(), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    [described] = (await speak.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)).groups
    assert described.error_code == ErrorCode.UNSUPPORTED_VERSION
