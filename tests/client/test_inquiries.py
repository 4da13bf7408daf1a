"""What a consumer can be asked, and what clients count."""

from collections.abc import Awaitable, Callable

import pytest

from semel.client import Consumer, Producer, RetriableError, TopicPartition, UsageError

MakeTopic = Callable[..., Awaitable[str]]


async def fill(bootstrap: str, topic: str, count: int) -> None:
    async with Producer(bootstrap) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=0)


async def test_a_consumer_says_what_it_reads_and_what_is_paused(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(partitions=2)
    async with Consumer(bootstrap, group_id=unique) as consumer:
        assert consumer.subscription() == frozenset()
        assert topic in await consumer.topics()
        assert not [name for name in await consumer.topics() if name.startswith("__")]
        consumer.subscribe([topic])
        assert consumer.subscription() == {topic}
        while not consumer.assignment():
            await consumer.poll(200)
        places = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        assert consumer.assignment() == places
        consumer.pause(TopicPartition(topic, 1))
        assert consumer.paused() == {TopicPartition(topic, 1)}
        consumer.resume(TopicPartition(topic, 1))
        assert consumer.paused() == frozenset()
        await consumer.unsubscribe()
        assert consumer.subscription() == frozenset()


async def test_a_pattern_s_subscription_names_the_topics_that_match(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Consumer(bootstrap, group_id=unique) as consumer:
        consumer.subscribe(pattern=f"{topic[:-1]}.")
        while not consumer.assignment():
            await consumer.poll(200)
        assert consumer.subscription() == {topic}


async def test_positions_and_lag_count_what_was_given_out_not_what_was_polled_ahead(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    place = TopicPartition(topic, 0)
    await fill(bootstrap, topic, 10)
    async with Consumer(bootstrap) as consumer:
        consumer.assign([place])
        assert consumer.lag(place) is None
        assert consumer.high_watermark(place) is None
        assert (await anext(consumer)).offset == 0
        assert await consumer.position(place) == 1
        assert consumer.lag(place) == 9
        assert consumer.metrics()["lag"] == {place: 9}
        assert consumer.high_watermark(place) == consumer.last_stable_offset(place) == 10


async def test_going_back_to_what_is_committed(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(partitions=2)
    place, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await fill(bootstrap, topic, 10)
    async with Consumer(bootstrap, group_id=unique) as consumer:
        consumer.assign([place, other])
        read = 0
        while read < 10:
            read += len(await consumer.poll(5_000))
        await consumer.commit({place: 4})
        await consumer.seek_to_committed()
        assert await consumer.position(place) == 4
        assert await consumer.position(other) == 0
        assert (await anext(consumer)).offset == 4


async def test_by_default_only_committed_records_are_seen_and_none_is_skipped(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"aborted")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send(topic, b"committed")
    async with Consumer(bootstrap) as consumer:  # made after the records, without any setting
        consumer.assign([TopicPartition(topic, 0)])
        assert (await anext(consumer)).value == b"committed"
        assert consumer.settings.enable_auto_commit is False


async def test_a_producer_counts_what_it_does(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(max_message_bytes="2000")
    async with Producer(bootstrap, transactional_id=unique) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            for number in range(10):
                await producer.send(topic, b"%d" % number)
            assert producer.metrics()["records_buffered"] == 10
        await producer.begin_transaction()
        await producer.send(topic, b"never seen")
        await producer.abort_transaction()
        with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
            async with producer.transaction():
                await producer.send(topic, b"x" * 5_000)
        found = producer.metrics()
    assert found["records_sent"] == 10
    assert found["batches_sent"] == found["delivery_latency_ms"]["count"] == 1
    assert 61 < found["bytes_sent"] < 1_000
    assert found["records_failed"] == 2
    assert found["records_buffered"] == found["bytes_buffered"] == 0
    assert found["transactions_committed"] == found["commit_latency_ms"]["count"] == 1
    assert found["transactions_aborted"] == 2
    # Apache Kafka may answer CreateTopics before it leads the new partition.
    errors = dict(found["errors"])
    early = errors.pop("NOT_LEADER_OR_FOLLOWER", 0)
    assert errors == {"MESSAGE_TOO_LARGE": 1}
    assert found["request_latency_ms"]["count"] == 2 + early
    assert 0 < found["request_latency_ms"]["mean_ms"] <= found["request_latency_ms"]["max_ms"]
    assert found["connections"] >= 1
    assert found["uptime_s"] > 0


async def test_a_consumer_counts_what_it_does(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    await fill(bootstrap, topic, 10)
    async with Consumer(bootstrap, group_id=unique) as consumer:
        consumer.subscribe([topic])
        read = 0
        while read < 10:
            read += len(await consumer.poll(5_000))
        await consumer.commit()
        with pytest.raises(RetriableError):
            await consumer.commit({TopicPartition(f"no-{topic}", 0): 1}, timeout_ms=1)
        found = consumer.metrics()
    assert found["records_received"] == 10
    assert found["bytes_received"] > 61
    assert found["fetch_latency_ms"]["count"] >= 1
    assert found["polls"] >= 1
    assert found["lag"] == {TopicPartition(topic, 0): 0}
    assert found["rebalances"] == 1
    assert found["commit_latency_ms"]["count"] == 1
    assert found["commits_failed"] == 1


async def test_connections_that_fail_are_counted_and_a_client_not_started_has_no_metrics(
    bootstrap: str,
) -> None:
    async with Producer(f"127.0.0.1:1,{bootstrap}", retry_backoff_ms=1) as producer:
        assert producer.metrics()["connections"] >= 1
    for client in (producer, Producer(bootstrap), Consumer(bootstrap)):
        with pytest.raises(UsageError, match="not started"):
            client.metrics()
