"""Quotas of a running broker: kept, told, and obeyed by making clients wait."""

import asyncio

import pytest

from semel.broker.dispatch import Route
from semel.wire.batches import BatchBuilder
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from semel.wire.messages.create_partitions import CreatePartitionsRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from semel.wire.messages.describe_cluster import DescribeClusterRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.produce import ProduceRequest


def altering(key, value, remove=False, **entity):
    op = AlterClientQuotasRequest.OpData(key=key, value=value, remove=remove)
    parts = [
        AlterClientQuotasRequest.EntityData(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in entity.items()
    ]
    entry = AlterClientQuotasRequest.EntryData(entity=parts, ops=[op])
    return AlterClientQuotasRequest(entries=[entry])


def producing(size, acks=-1):
    builder = BatchBuilder()
    builder.append(None, b"x" * size, 1_700_000_000_000)
    part = ProduceRequest.PartitionProduceData(index=0, records=bytes(builder.build()))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[part])
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic])


def fetching(offset=0, session_id=0, epoch=-1):
    part = FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    topic = FetchRequest.FetchTopic(topic="t", partitions=[part])
    return FetchRequest(
        max_bytes=1 << 20, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=[topic]
    )


@pytest.fixture
async def topic(broker):
    return broker.catalog.create_topic("t", 1)


@pytest.fixture
def muted(broker, monkeypatch):
    """For how long connections were silenced; they are not, so that tests need not wait."""
    from semel.net.connection import Connection

    seconds = []
    monkeypatch.setattr(Connection, "mute", lambda connection, time: seconds.append(time))
    return seconds


async def set_quota(ask, key, value, **entity):
    answer = await ask(altering(key, value, **entity), 1)
    assert answer.entries[0].error_code == 0, answer


async def test_a_quota_is_kept_and_told_also_after_a_restart(start_broker, connect, tmp_path):
    broker = await start_broker(tmp_path / "kept")
    ask = await connect(broker)
    await set_quota(ask, "producer_byte_rate", 1_000.0, user="u", client_id=None)
    await set_quota(ask, "request_percentage", 50.0, client_id="c")
    await broker.stop()
    ask = await connect(await start_broker(tmp_path / "kept"))
    told = await ask(DescribeClientQuotasRequest(), 1)
    assert [
        ([(part.entity_type, part.entity_name) for part in entry.entity], entry.values[0].value)
        for entry in told.entries
    ] == [([("user", "u"), ("client-id", None)], 1_000.0), ([("client-id", "c")], 50.0)]


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, 3),
        ([("user", 0, "u")], False, 2),
        ([("user", 0, "u")], True, 1),
        ([("user", 2, None)], False, 2),
        ([("client-id", 1, None)], False, 1),
        ([("client-id", 0, "c")], True, 1),
        ([("user", 0, "nobody")], False, 0),
    ],
)
async def test_quotas_are_found_by_filter(ask, components, strict, found):
    await set_quota(ask, "producer_byte_rate", 1_000.0, user="u")
    await set_quota(ask, "producer_byte_rate", 1_000.0, user="u", client_id=None)
    await set_quota(ask, "producer_byte_rate", 1_000.0, client_id="c")
    component = DescribeClientQuotasRequest.ComponentData
    request = DescribeClientQuotasRequest(
        components=[
            component(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )
    assert len((await ask(request, 1)).entries) == found


async def test_a_producer_beyond_its_rate_is_told_how_long_to_wait(ask, topic, muted):
    await set_quota(ask, "producer_byte_rate", 10_000.0, client_id="tester")
    first = await ask(producing(90_000), 9)
    assert (first.throttle_time_ms, muted) == (0, [])
    second = await ask(producing(90_000), 9)
    # 180 KB over 10 s are 18 KB a second: 0.8 of the limit too much, so 0.8 of 10 s.
    assert 7_900 <= second.throttle_time_ms <= 8_200
    assert muted == [second.throttle_time_ms / 1_000]
    assert second.responses[0].partition_responses[0].error_code == 0


async def test_a_producer_without_answers_is_silenced_all_the_same(ask, topic, muted, until):
    await set_quota(ask, "producer_byte_rate", 10_000.0, user="ANONYMOUS")
    ask.send(producing(500_000, acks=0), 9)
    await until(lambda: muted)
    assert muted[0] > 30


async def test_a_consumer_beyond_its_rate_gets_nothing_but_the_time_to_wait(ask, topic, muted):
    await ask(producing(60_000), 9)
    await ask(producing(60_000), 9)
    await set_quota(ask, "consumer_byte_rate", 10_000.0, client_id="tester")
    first = await ask(fetching(0), 12)
    assert len(first.responses[0].partitions[0].records) > 60_000  # a first batch always comes
    second = await ask(fetching(1), 12)
    assert second.responses == []
    assert 1_900 <= second.throttle_time_ms <= 2_200
    assert muted[-1] == second.throttle_time_ms / 1_000
    again = await ask(fetching(1), 12)  # what was not sent was not counted
    assert again.throttle_time_ms == pytest.approx(second.throttle_time_ms, abs=300)


async def test_who_takes_too_much_time_waits_at_most_a_window(ask, topic, muted):
    await set_quota(ask, "request_percentage", 1e-9, client_id="tester")
    answer = await ask(DescribeClusterRequest(), 1)
    assert answer.throttle_time_ms == 1_000
    assert muted == [1.0]


async def test_a_muted_connection_is_not_served_and_others_are(broker, ask, connect, topic, until):
    await set_quota(ask, "producer_byte_rate", 100.0, client_id="tester")
    slow = await connect(broker)
    slow.send(producing(50_000), 9)
    assert (await slow.receive(0, 9)).throttle_time_ms > 100_000
    slow.send(DescribeClusterRequest(), 1)
    waiting = asyncio.create_task(slow.receive(60, 1))
    for _ in range(20):
        assert (await ask(DescribeClusterRequest(), 1)).error_code == 0
    assert not waiting.done()
    waiting.cancel()


async def test_a_muted_connection_is_served_again_when_its_time_is_over(broker, ask, topic):
    await set_quota(ask, "request_percentage", 1e-9, client_id="tester")
    broker.throttling.windows = broker.throttling.windows._replace(size_ms=20)
    for _ in range(3):
        assert (await ask(DescribeClusterRequest(), 1)).throttle_time_ms == 20


async def test_topics_beyond_the_quota_of_mutations_are_refused_or_waited_for(ask, muted):
    await set_quota(ask, "controller_mutation_rate", 1.0, user="ANONYMOUS")
    new = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[new(name=f"t{n}", num_partitions=6, replication_factor=1) for n in range(3)]
    )
    answer = await ask(request, 7)
    assert [topic.error_code for topic in answer.topics] == [0, 0, E.THROTTLING_QUOTA_EXCEEDED]
    assert 900 <= answer.throttle_time_ms <= 1_000
    assert muted
    gone = DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t0")])
    assert (await ask(gone, 6)).responses[0].error_code == E.THROTTLING_QUOTA_EXCEEDED
    older = DeleteTopicsRequest(topic_names=["t0"])
    answer = await ask(older, 4)
    assert answer.responses[0].error_code == 0
    assert answer.throttle_time_ms > 6_000
    more = CreatePartitionsRequest.CreatePartitionsTopic(name="t1", count=8, assignments=None)
    grown = await ask(CreatePartitionsRequest(topics=[more]), 3)
    assert grown.results[0].error_code == E.THROTTLING_QUOTA_EXCEEDED


async def test_without_a_quota_no_request_is_counted(broker, ask):
    await ask(DescribeClusterRequest(), 1)
    assert {type(route) for route in broker._dispatcher.routes.values()} == {Route}
    await set_quota(ask, "producer_byte_rate", 10_000.0, client_id="x")
    await ask(DescribeClusterRequest(), 1)
    assert Route not in {type(route) for route in broker._dispatcher.routes.values()}
    await ask(altering("producer_byte_rate", 0.0, remove=True, client_id="x"), 1)
    await ask(DescribeClusterRequest(), 1)
    assert {type(route) for route in broker._dispatcher.routes.values()} == {Route}


async def test_what_is_only_to_be_checked_is_not_set(broker, ask):
    request = altering("producer_byte_rate", 5.0, user="u")
    request.validate_only = True
    assert (await ask(request, 1)).entries[0].error_code == 0
    assert not broker.catalog.quotas
