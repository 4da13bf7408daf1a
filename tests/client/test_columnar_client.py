"""Arrow tables through the producer and the consumer, on a real broker."""

import asyncio
from collections.abc import Awaitable, Callable

import pyarrow as pa
import pytest

from semel.client import (
    Consumer,
    FatalError,
    Producer,
    RetriableError,
    SemelError,
    UsageError,
    blocking,
)
from semel.client.machines.partitioner import partition_for_key
from semel.client.machines.types import TopicPartition
from semel.columnar import kernels
from semel.wire.errors import ErrorCode

MakeTopic = Callable[..., Awaitable[str]]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def chosen_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = kernels.load() if request.param == "compiled" else kernels.PLAIN
    monkeypatch.setattr(kernels, "ready", lambda: chosen)


def reader(bootstrap: str, topic: str, partitions: int = 1, **settings: str) -> Consumer:
    given = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"} | settings
    consumer = Consumer(bootstrap, **given)
    consumer.assign([(topic, index) for index in range(partitions)])
    return consumer


async def receive(consumer: Consumer, rows: int) -> pa.Table:
    tables = []
    while sum(table.num_rows for table in tables) < rows:
        tables.append(await consumer.poll_table(5_000))
    return pa.concat_tables(tables)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_a_table_arrives_as_it_was_sent(
    bootstrap: str, make_topic: MakeTopic, codec: str
) -> None:
    topic = await make_topic()
    table = pa.table(
        {
            "key": pa.array([b"a", None, b"", b"d"]),
            "value": pa.array(["text", None, "", "x" * 5_000], pa.large_string()),
            "headers": pa.array([[("h", b"1"), ("n", None)], None, [], [("", b"")]], HEADERS),
            "timestamp": pa.array([1234, 0, 1 << 40, 5], pa.timestamp("ms")),
        }
    )
    async with Producer(bootstrap, compression_type=codec) as producer:
        written = await (await producer.send_table(topic, table))
        assert written.rows == 4
        assert [(b.topic, b.partition, b.first_offset, b.rows) for b in written.batches] == [
            (topic, 0, 0, 4)
        ]
    async with reader(bootstrap, topic) as consumer:
        found = await receive(consumer, 4)
        found.validate(full=True)
        assert found["offset"].to_pylist() == [0, 1, 2, 3]
        assert found["key"].to_pylist() == [b"a", None, b"", b"d"]
        assert found["value"].to_pylist() == [b"text", None, b"", b"x" * 5_000]
        assert found["timestamp"].cast(pa.int64()).to_pylist() == [1234, 0, 1 << 40, 5]
        assert found["headers"].to_pylist() == [
            [{"key": "h", "value": b"1"}, {"key": "n", "value": None}],
            [],
            [],
            [{"key": "", "value": b""}],
        ]
        assert await consumer.position(TopicPartition(topic, 0)) == 4


async def test_rows_go_where_single_records_would(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(5)
    keys = [b"key %d" % number for number in range(500)]
    table = pa.table({"key": keys, "partition": [None] * 499 + [3]})
    async with Producer(bootstrap, table_batch_size=1_000) as producer:
        await (await producer.send_table(topic, table))
    async with reader(bootstrap, topic, 5) as consumer:
        found = await receive(consumer, 500)
    places = dict(zip(found["key"].to_pylist(), found["partition"].to_pylist(), strict=True))
    assert places == {key: partition_for_key(key, 5) for key in keys} | {keys[-1]: 3}
    for partition in range(5):
        rows = found.filter(pa.compute.equal(found["partition"], partition))
        numbers = [int(key[4:]) for key in rows["key"].to_pylist()]
        assert numbers == sorted(numbers)


async def test_rows_may_name_their_topics(bootstrap: str, make_topic: MakeTopic) -> None:
    first, second = await make_topic(), await make_topic()
    table = pa.table({"topic": [first, second, first], "value": [b"1", b"2", b"3"]})
    async with Producer(bootstrap) as producer:
        await (await producer.send_table(None, table))
    async with reader(bootstrap, first) as consumer:
        assert (await receive(consumer, 2))["value"].to_pylist() == [b"1", b"3"]


async def test_rows_without_keys_use_all_partitions(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(4)
    table = pa.table({"value": [b"%05d" % number * 20 for number in range(2_000)]})
    async with Producer(bootstrap, table_batch_size=2_000) as producer:
        written = await (await producer.send_table(topic, table))
    assert {batch.partition for batch in written.batches} == {0, 1, 2, 3}
    assert len(written.batches) < 200  # they stay with a partition for a batch: 17 rows of these


async def test_tables_and_records_keep_their_order(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    expected = []
    async with Producer(bootstrap, linger_ms=1_000) as producer:
        for number in range(20):
            values = [b"%d-%d" % (number, row) for row in range(number)]
            await producer.send(topic, b"%d" % number)
            await producer.send_table(topic, pa.table({"value": pa.array(values, pa.binary())}))
            expected += [b"%d" % number, *values]
        await producer.flush()
    async with reader(bootstrap, topic) as consumer:
        assert (await receive(consumer, len(expected)))["value"].to_pylist() == expected


@pytest.mark.parametrize("version", [1, 2])
async def test_a_table_is_seen_with_its_transaction_or_not_at_all(
    bootstrap: str, make_topic: MakeTopic, unique: str, version: int
) -> None:
    topic = await make_topic(2)
    async with Producer(
        bootstrap, transactional_id=unique, max_transaction_version=version
    ) as producer:
        for number in range(6):
            table = pa.table({"value": [b"%d" % number] * 2, "partition": [0, 1]})
            try:
                async with producer.transaction():
                    await producer.send_table(topic, table)
                    await producer.flush()
                    if number % 2:
                        raise KeyError(number)
            except KeyError:
                assert number % 2
    async with reader(bootstrap, topic, 2) as consumer:
        found = await receive(consumer, 6)
        assert sorted(
            zip(*(found[c].to_pylist() for c in ("partition", "value")), strict=True)
        ) == [(p, b"%d" % n) for p in (0, 1) for n in (0, 2, 4)]
    async with reader(bootstrap, topic, 2, isolation_level="read_uncommitted") as consumer:
        assert (await receive(consumer, 12)).num_rows == 12


async def test_a_table_outside_a_transaction_is_refused(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, transactional_id=unique) as producer:
        await producer.init_transactions()
        with pytest.raises(UsageError):
            await producer.send_table(topic, pa.table({"value": [b"x"]}))


async def test_a_row_that_the_topic_refuses_fails_the_delivery_and_the_transaction(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic(max_message_bytes="3000")
    async with Producer(bootstrap, transactional_id=unique) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        delivery = await producer.send_table(topic, pa.table({"value": [b"", b"x" * 5_000]}))
        with pytest.raises(SemelError) as caught:
            await delivery
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert delivery.done()
        with pytest.raises(SemelError):
            await producer.commit_transaction()


async def test_what_is_wrong_with_a_table_is_said_before_anything_is_sent(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(2)
    good = [b"x"] * 3
    async with Producer(bootstrap, max_request_size=10_000) as producer:
        for columns, words in (
            ({"value": good, "colour": good}, "no column 'colour'"),
            ({"value": [1, 2, 3]}, "value should be binary or string, not int64"),
            ({"value": good, "partition": [0, 1, 2]}, "has no partition 2"),
            ({"value": good, "partition": [0.5, 1, 1]}, "partition should be an integer"),
            ({"value": good, "partition": [0, 1, 1 << 40]}, "cannot be sent"),
            ({"value": good, "timestamp": ["now"] * 3}, "timestamp should be a timestamp"),
            ({"value": good, "headers": [["a"]] * 3}, "headers should be list"),
            ({"value": good, "topic": [topic] * 3}, "use one of them"),
        ):
            with pytest.raises(UsageError, match=words):
                await producer.send_table(topic, pa.table(columns))
        with pytest.raises(UsageError, match="a row names no topic"):
            await producer.send_table(None, pa.table({"topic": [topic, None]}))
        with pytest.raises(UsageError, match="no column topic"):
            await producer.send_table(None, pa.table({"value": good}))
        with pytest.raises(UsageError, match="takes an Arrow table"):
            await producer.send_table(topic, 7)
        with pytest.raises(FatalError, match="row 2 of the table") as caught:
            await producer.send_table(topic, pa.table({"value": [b"", b"", b"x" * 10_000]}))
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        await producer.flush()
    async with reader(bootstrap, topic, 2) as consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        assert set(ends.values()) == {0}


async def test_an_empty_table_is_sent_and_received(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with Producer(bootstrap) as producer:
        for empty in (pa.table({"value": pa.array([], pa.binary())}), pa.table({})):
            assert await (await producer.send_table(topic, empty)) == (0, ())
    async with reader(bootstrap, topic) as consumer:
        table = await consumer.poll_table()
        assert table.num_rows == 0
        assert table.column_names == [
            "topic", "partition", "offset", "timestamp", "key", "value", "headers",
        ]  # fmt: skip


async def test_a_batch_larger_than_the_topic_allows_is_cut(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(max_message_bytes="3000")
    values = [b"%03d" % number * 100 for number in range(100)]
    async with Producer(bootstrap) as producer:
        written = await (await producer.send_table(topic, pa.table({"value": values})))
        assert written.rows == 100
        assert len(written.batches) > 10
    async with reader(bootstrap, topic) as consumer:
        assert (await receive(consumer, 100))["value"].to_pylist() == values


async def test_a_table_larger_than_the_buffer_waits_for_room(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic(3)
    table = pa.table({"value": [b"%05d" % number * 40 for number in range(4_000)]})
    async with Producer(bootstrap, buffer_memory=50_000, table_batch_size=10_000) as producer:
        delivery = await producer.send_table(topic, table)
        assert producer._accumulator.buffered <= 50_000
        assert (await delivery).rows == 4_000
    async with reader(bootstrap, topic, 3) as consumer:
        found = await receive(consumer, 4_000)
        assert sorted(found["value"].to_pylist()) == table["value"].to_pylist()


async def test_many_megabytes_arrive_whole(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic(3)
    values = [b"%05d" % number * 205 for number in range(10_000)]
    async with Producer(bootstrap) as producer:
        await producer.send_table(topic, pa.table({"value": values}))
        await producer.flush()
    async with reader(bootstrap, topic, 3) as consumer:
        found = await receive(consumer, len(values))
        assert sorted(found["value"].to_pylist()) == values


async def test_a_broker_that_never_answers_ends_a_table_in_time_and_within_its_memory(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    table = pa.table({"value": [b"x" * 1_000] * 1_000})
    async with Producer(
        bootstrap, buffer_memory=100_000, table_batch_size=10_000, max_block_ms=200
    ) as producer:
        await producer.partitions_for(topic)
        producer._sender._turn = lambda: None  # as if every answer were outstanding
        with pytest.raises(RetriableError, match="buffer of 100000 bytes is full"):
            await producer.send_table(topic, table)
        assert producer._accumulator.buffered <= 100_000
        del producer._sender._turn
        producer._sender._scheduled = False
        await producer.flush(30_000)
        written = await (await producer.send_table(topic, table.slice(0, 50)))
        assert written.rows == 50


async def test_polls_iteration_and_tables_may_be_mixed(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    async with Producer(bootstrap) as producer:
        for start in (0, 50):
            values = [b"%d" % number for number in range(start, start + 50)]
            await (await producer.send_table(topic, pa.table({"value": values})))
    async with reader(bootstrap, topic) as consumer:
        seen = []
        while len(seen) < 7:
            seen += [record.value for record in await consumer.poll(5_000, max_records=7)]
        async for record in consumer:
            seen.append(record.value)
            if len(seen) == 10:
                break
        seen += (await receive(consumer, 90))["value"].to_pylist()
        assert seen == [b"%d" % number for number in range(100)]


async def test_concurrent_tables_arrive_whole(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    async with Producer(bootstrap, table_batch_size=500) as producer:

        async def send(number: int) -> None:
            values = [b"%d %d" % (number, row) for row in range(100)]
            await (await producer.send_table(topic, pa.table({"value": values})))

        await asyncio.gather(*(send(number) for number in range(5)))
    async with reader(bootstrap, topic) as consumer:
        found = (await receive(consumer, 500))["value"].to_pylist()
    for number in range(5):
        mine = [value for value in found if value.startswith(b"%d " % number)]
        assert mine == [b"%d %d" % (number, row) for row in range(100)]


async def test_blocking_twins_have_tables_too(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()

    def work() -> list[bytes]:
        with blocking.Producer(bootstrap) as producer:
            written = producer.send_table(topic, pa.table({"value": [b"1", b"2"]})).result()
            assert written.rows == 2
        with blocking.Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            found: list[bytes] = consumer.poll_table(10_000)["value"].to_pylist()
            return found

    assert await asyncio.to_thread(work) == [b"1", b"2"]
