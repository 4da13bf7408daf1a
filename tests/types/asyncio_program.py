"""A user's program that touches all of the asyncio surface, typed as a strict user types it."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pyarrow as pa

import semel
from semel.client import (
    Acl,
    AclFilter,
    ActiveProducer,
    Admin,
    ClusterInfo,
    Consumer,
    ConsumerMetrics,
    ConsumerRecord,
    Delivery,
    FoundOffset,
    GroupDescription,
    GroupListing,
    GroupMember,
    GroupMetadata,
    Lag,
    Ledger,
    LedgerEntry,
    NewTopic,
    Node,
    OffsetAndMetadata,
    Producer,
    ProducerMetrics,
    Quota,
    RecordMetadata,
    ScramUser,
    TopicMetadata,
    TopicPartition,
    Transact,
    TransactBatch,
    TransactionDescription,
    TransactionListing,
    transact,
)
from semel.errors import (
    AbortableError,
    DeserializationError,
    ErrorCode,
    FatalError,
    FencedError,
    RetriableError,
    SemelError,
    TruncatedError,
    UnreachableError,
    UsageError,
)

Order = dict[str, int]


def read_order(data: bytes) -> Order:
    order: Order = json.loads(data)
    return order


def write_order(order: Order) -> bytes:
    return json.dumps(order).encode()


def java_settings(bootstrap_servers: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap_servers, "linger.ms": "1", "acks": "all"}


async def send(bootstrap_servers: str) -> None:
    async with Producer(
        bootstrap_servers,
        key_serializer=str.encode,
        value_serializer=write_order,
        compression_type="zstd",
        linger_ms=1,
    ) as producer:
        delivery: Delivery = await producer.send(
            "orders", {"cents": 1}, "a", partition=0, headers=[("h", b"1")], timestamp_ms=1
        )
        written: RecordMetadata = await delivery
        assert delivery.done()
        assert written.offset >= 0
        await producer.send_and_wait("orders", {"cents": 2}, "b", headers=[("h", None)])
        await producer.send_many("orders", [({"cents": 3}, "c"), (None, "a")])
        await producer.flush(timeout_ms=10_000)
        assert await producer.partitions_for("orders") == [0]
        metrics: ProducerMetrics = producer.metrics()
        assert metrics["records_sent"] == 4
        assert metrics["request_latency_ms"]["mean_ms"] > 0
        assert producer.settings.linger_ms == 1
        assert producer.identity.producer_id >= 0


async def send_in_transactions(bootstrap_servers: str) -> None:
    producer = Producer(java_settings(bootstrap_servers), transactional_id="program")
    await producer.start()
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send("payments", b"1")
    await producer.abort_transaction()
    async with producer.transaction() as within:
        await within.send("payments", b"2")
        offsets = {TopicPartition("orders", 0): OffsetAndMetadata(1)}
        await within.send_offsets_to_transaction(offsets, "payers", timeout_ms=10_000)
    await producer.begin_transaction()
    await producer.send_offsets_to_transaction(
        {TopicPartition("orders", 0): 2}, GroupMetadata("payers")
    )
    table = pa.table({"value": ["3", "4"]})
    written = await (await producer.send_table("payments", table))
    await producer.commit_transaction()
    assert written.rows == 2
    assert producer.state.name == "READY"
    await producer.close()


async def read(bootstrap_servers: str) -> None:
    place = TopicPartition("orders", 0)
    async with Consumer(
        bootstrap_servers,
        key_deserializer=bytes.decode,
        value_deserializer=read_order,
        group_id="readers",
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.subscribe(["orders"], on_assigned=lambda new: print(len(new)))
        cents = 0
        async for record in consumer:
            cents += total(record)
            if record.offset == 3:
                break
        assert cents == 6
        assert consumer.subscription() == {"orders"}
        assert consumer.assignment() == {place}
        assert "orders" in await consumer.topics()
        consumer.pause(place)
        assert consumer.paused() == {place}
        consumer.resume(place)
        await consumer.commit()
        await consumer.commit({place: 2}, timeout_ms=10_000)
        committed = await consumer.committed([place])
        assert committed[place].offset == 2
        await consumer.seek_to_committed(place)
        assert await consumer.position(place) == 2
        assert consumer.positions()[place].offset == 2
        member: GroupMetadata = consumer.group_metadata()
        assert member.group_id == "readers"
        metrics: ConsumerMetrics = consumer.metrics()
        assert metrics["records_received"] == 4
        assert metrics["lag"][place] == 2
        await consumer.unsubscribe()


def total(record: ConsumerRecord[str, Order]) -> int:
    return 0 if record.value is None else record.value["cents"]


async def look_around(bootstrap_servers: str) -> None:
    place = TopicPartition("payments", 0)
    consumer = Consumer(settings=java_consumer(bootstrap_servers))
    await consumer.start()
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    table: pa.Table = await consumer.poll_table(5_000)
    assert table.num_rows == 3
    consumer.seek(place, 0)
    records: list[ConsumerRecord] = []
    while len(records) < 3:
        records += await consumer.poll(5_000, max_records=10)
    value: bytes | None = records[0].value
    assert value == b"2"
    assert records[0].topic_partition == place
    assert consumer.lag(place) == 0
    assert consumer.high_watermark(place) == consumer.last_stable_offset(place)
    consumer.seek_to_end()
    first = await consumer.beginning_offsets([place])
    last = await consumer.end_offsets([place])
    assert first[place] < last[place]
    found: dict[TopicPartition, FoundOffset] = await consumer.offsets_for_times({place: 0})
    assert found[place].offset >= 0
    assert await consumer.partitions_for("payments") == [0]
    await consumer.close()


def java_consumer(bootstrap_servers: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap_servers, "fetch.max.wait.ms": 50}


async def transform(bootstrap_servers: str) -> None:
    async with transact(
        bootstrap_servers,
        inputs=["orders"],
        group_id="billing",
        transactional_id="billing-1",
        value_deserializer=read_order,
        value_serializer=write_order,
        stop_when_idle_ms=3_000,
        max_poll_records=2,
    ) as batches:
        await bill(batches)
        assert batches.consumer.metrics()["records_received"] >= 4
        assert batches.producer.metrics()["transactions_committed"] >= 2
    loop = transact(bootstrap_servers, inputs="orders", group_id="g", transactional_id="t")
    loop.stop()
    async with loop:
        await loop.run(nothing)


async def bill(batches: Transact[bytes, Order]) -> None:
    again = True
    async for batch in batches:
        for record in batch:
            cents = record.value["cents"] if record.value else 0
            await batch.send("invoices", {"cents": cents}, record.key, headers=record.headers)
        if again and batch.attempt == 1:
            again = False
            await batches.retry()
        assert len(batch) == len(batch.records)


async def nothing(batch: TransactBatch) -> None:
    await batch.producer.flush()


async def count_once(bootstrap_servers: str) -> None:
    ledger = Ledger(bootstrap_servers, timeout_ms=10_000)
    async with Producer(bootstrap_servers, transactional_id="counter") as producer:
        for _ in range(2):
            async with ledger.once(producer, "counting", 1, note={"why": "twice"}) as fresh:
                if fresh:
                    await producer.send("counted", b"1")
        async with producer.transaction():
            await ledger.record(producer, "counting", 2)
    assert await ledger.last("counting") == 2
    entries: dict[str, LedgerEntry] = await ledger.entries()
    assert entries["counting"].number == 2
    entries["counting"].check_writer("client")


async def administer(bootstrap_servers: str) -> None:
    async with Admin(bootstrap_servers, request_timeout_ms=10_000) as admin:
        cluster: ClusterInfo = await admin.describe_cluster()
        broker: Node = cluster.brokers[0]
        await admin.create_topics(
            [NewTopic("made", partitions=1, configs={"retention.ms": "1000"}), "other"],
            exist_ok=True,
        )
        await admin.create_partitions({"made": 2})
        topics: dict[str, TopicMetadata] = await admin.describe_topics(["made"])
        assert len(topics["made"].partitions) == 2
        assert "made" in await admin.list_topics(internal=True)
        await admin.alter_configs("made", {"retention.ms": None})
        await admin.alter_quotas({"user": "typed"}, {"producer_byte_rate": 1e9})
        quotas: list[Quota] = await admin.list_quotas()
        assert [quota.value for quota in quotas] == [1e9]
        await admin.alter_quotas({"user": "typed"}, {"producer_byte_rate": None})
        await admin.set_password("typed", "secret", iterations=4096)
        users: list[ScramUser] = await admin.list_users()
        assert set(users[0].mechanisms) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
        await admin.remove_user("typed")
        rule = Acl("User:typed", "READ", "TOPIC", "orders")
        with suppress(FatalError):  # this broker has no authorizer
            await admin.create_acls([rule])
        with suppress(FatalError):
            rules: list[Acl] = await admin.describe_acls(AclFilter(name="orders"))
            assert rules
        with suppress(FatalError):
            await admin.delete_acls([AclFilter(principal="User:typed")])
        assert (await admin.describe_configs("made"))["cleanup.policy"] == "delete"
        await admin.describe_configs(broker=broker.node_id, only_changed=True)
        place = TopicPartition("orders", 0)
        ends = await admin.list_offsets({place: -1}, isolation_level="read_committed")
        await admin.delete_records({place: ends[place].offset - 1})
        await admin.delete_topics(["made", "gone"], missing_ok=True)


async def administer_groups(bootstrap_servers: str) -> None:
    async with Admin(bootstrap_servers) as admin:
        groups: list[GroupListing] = await admin.list_groups()
        assert "readers" in {group.group_id for group in groups}
        found: GroupDescription = await admin.describe_group("readers")
        members: tuple[GroupMember, ...] = found.members
        assert not members
        place = TopicPartition("orders", 0)
        offsets = await admin.group_offsets("readers")
        await admin.alter_group_offsets("readers", {place: offsets[place].offset})
        lags: list[Lag] = await admin.group_lag("readers")
        assert lags[0].lag >= 0
        assert lags[0].held_back == 0
        await admin.delete_groups(["readers"])


async def administer_transactions(bootstrap_servers: str) -> None:
    async with Admin(bootstrap_servers) as admin:
        listed: list[TransactionListing] = await admin.list_transactions(pattern="count.*")
        found: TransactionDescription = await admin.describe_transaction(listed[0].transactional_id)
        assert found.state
        place = TopicPartition("counted", 0)
        producers: list[ActiveProducer] = await admin.describe_producers([place])
        assert producers
        for hanging in await admin.find_hanging([place], open_longer_than_ms=0):
            await admin.abort_transaction(hanging)
        await admin.fence_producer("counter")


def advice(error: SemelError) -> str:
    if isinstance(error, DeserializationError):
        return f"seek to {error.offset + 1} of {error.partition}: {error.record.value!r}"
    if isinstance(error, TruncatedError):
        return f"go back to {error.diverged_at or error.position}"
    if isinstance(error, FencedError | UsageError | FatalError):
        return "stop"
    if isinstance(error, AbortableError):
        return "abort and run it again"
    if isinstance(error, UnreachableError | RetriableError):
        return "call again"
    return "look it up" if error.code is ErrorCode.NONE else error.code.advice


async def main() -> None:
    async with semel.Broker(settings={"num.partitions": 1}) as broker:
        where = broker.bootstrap_servers
        await send(where)
        await send_in_transactions(where)
        await read(where)
        await look_around(where)
        await transform(where)
        await count_once(where)
        await administer(where)
        await administer_groups(where)
        await administer_transactions(where)
        try:
            await Producer(where, transactional_id="t").send("t", b"v")
        except SemelError as error:
            print(advice(error))


if __name__ == "__main__":
    asyncio.run(main())
