"""A user's script that touches all of the blocking surface, typed as a strict user types it."""

import json
from contextlib import suppress
from typing import Any

import pyarrow as pa

import semel
from semel.client import (
    Acl,
    AclFilter,
    ConsumerMetrics,
    ConsumerRecord,
    FoundOffset,
    GroupMetadata,
    LedgerEntry,
    NewTopic,
    OffsetAndMetadata,
    ProducerMetrics,
    Quota,
    RecordMetadata,
    ScramUser,
    TopicPartition,
)
from semel.client.blocking import (
    Admin,
    Consumer,
    Delivery,
    Ledger,
    Producer,
    Transact,
    TransactBatch,
    transact,
)
from semel.errors import DeserializationError, FatalError, SemelError

Order = dict[str, int]


def read_order(data: bytes) -> Order:
    order: Order = json.loads(data)
    return order


def write_order(order: Order) -> bytes:
    return json.dumps(order).encode()


def send(bootstrap_servers: str) -> None:
    with Producer(
        bootstrap_servers, key_serializer=str.encode, value_serializer=write_order, linger_ms=1
    ) as producer:
        delivery: Delivery[RecordMetadata] = producer.send(
            "orders", {"cents": 1}, "a", partition=0, headers=[("h", b"1")], timestamp_ms=1
        )
        written: RecordMetadata = delivery.result()
        assert delivery.done()
        assert written.offset >= 0
        producer.send_and_wait("orders", {"cents": 2}, "b")
        producer.send_many("orders", [({"cents": 3}, "c"), (None, "a")])
        producer.flush()
        assert producer.partitions_for("orders") == [0]
        metrics: ProducerMetrics = producer.metrics()
        assert metrics["records_sent"] == 4
        assert producer.settings.linger_ms == 1
        assert producer.identity.producer_id >= 0


def send_in_transactions(settings: dict[str, Any]) -> None:
    producer = Producer(settings, transactional_id="program")
    producer.start()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("payments", b"1")
    producer.abort_transaction()
    with producer.transaction() as within:
        within.send("payments", b"2")
        offsets = {TopicPartition("orders", 0): OffsetAndMetadata(1)}
        within.send_offsets_to_transaction(offsets, GroupMetadata("payers"))
    producer.begin_transaction()
    written = producer.send_table("payments", pa.table({"value": ["3", "4"]}))
    producer.commit_transaction()
    assert written.result().rows == 2
    assert producer.state.name == "READY"
    producer.close()


def read(bootstrap_servers: str) -> None:
    place = TopicPartition("orders", 0)
    with Consumer(
        bootstrap_servers,
        key_deserializer=bytes.decode,
        value_deserializer=read_order,
        group_id="readers",
    ) as consumer:
        consumer.subscribe(pattern="orders")
        cents = 0
        for record in consumer:
            cents += total(record)
            if record.offset == 3:
                break
        assert cents == 6
        assert consumer.subscription() == {"orders"}
        assert consumer.assignment() == {place}
        assert "orders" in consumer.topics()
        consumer.pause(place)
        assert consumer.paused() == {place}
        consumer.resume(place)
        consumer.commit({place: 2})
        assert consumer.committed([place])[place].offset == 2
        consumer.seek_to_committed(place)
        assert consumer.position(place) == 2
        assert consumer.positions()[place].offset == 2
        assert consumer.group_metadata().group_id == "readers"
        metrics: ConsumerMetrics = consumer.metrics()
        assert metrics["lag"][place] == 2
        assert consumer.settings.group_id == "readers"
        consumer.unsubscribe()


def total(record: ConsumerRecord[str, Order]) -> int:
    return 0 if record.value is None else record.value["cents"]


def look_around(settings: dict[str, Any]) -> None:
    place = TopicPartition("payments", 0)
    consumer = Consumer(settings=settings)
    consumer.start()
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    table: pa.Table = consumer.poll_table(5_000)
    assert table.num_rows == 3
    consumer.seek(place, 0)
    records: list[ConsumerRecord] = []
    while len(records) < 3:
        records += consumer.poll(5_000, max_records=10)
    value: bytes | None = records[0].value
    assert value == b"2"
    assert consumer.lag(place) == 0
    assert consumer.high_watermark(place) == consumer.last_stable_offset(place)
    consumer.seek_to_end()
    assert consumer.beginning_offsets([place])[place] < consumer.end_offsets([place])[place]
    found: dict[TopicPartition, FoundOffset] = consumer.offsets_for_times({place: 0})
    assert found[place].offset >= 0
    assert consumer.partitions_for("payments") == [0]
    consumer.close()


def transform(bootstrap_servers: str) -> None:
    with transact(
        bootstrap_servers,
        inputs=["orders"],
        group_id="billing",
        transactional_id="billing-1",
        value_deserializer=read_order,
        value_serializer=write_order,
        stop_when_idle_ms=3_000,
    ) as batches:
        bill(batches)
        assert batches.consumer.metrics()["records_received"] == 4
        assert batches.producer.metrics()["transactions_committed"] >= 1
    loop = transact(bootstrap_servers, inputs="orders", group_id="g", transactional_id="t")
    loop.stop()
    with loop:
        loop.run(nothing)


def bill(batches: Transact[bytes, Order]) -> None:
    try:
        for batch in batches:
            for record in batch:
                batch.send("invoices", record.value, record.key, headers=record.headers)
            assert len(batch) == len(batch.records)
            assert batch.attempt == 1
    except DeserializationError as error:
        batches.consumer.seek(error.partition, error.offset + 1)


def nothing(batch: TransactBatch) -> None:
    batch.producer.flush()


def count_once(bootstrap_servers: str) -> None:
    ledger = Ledger(bootstrap_servers)
    with Producer(bootstrap_servers, transactional_id="counter") as producer:
        for _ in range(2):
            with ledger.once(producer, "counting", 1) as fresh:
                if fresh:
                    producer.send("counted", b"1")
        with producer.transaction():
            ledger.record(producer, "counting", 2)
    assert ledger.last("counting") == 2
    entries: dict[str, LedgerEntry] = ledger.entries()
    assert entries["counting"].number == 2


def administer(bootstrap_servers: str) -> None:
    with Admin(bootstrap_servers, request_timeout_ms=10_000) as admin:
        broker = admin.describe_cluster().brokers[0]
        admin.create_topics([NewTopic("made", partitions=1), "other"], exist_ok=True)
        admin.create_partitions({"made": 2})
        assert len(admin.describe_topics(["made"])["made"].partitions) == 2
        assert "made" in admin.list_topics()
        admin.alter_configs("made", {"retention.ms": "1000"})
        admin.alter_quotas({"user": "typed"}, {"producer_byte_rate": 1e9})
        quotas: list[Quota] = admin.list_quotas()
        assert [quota.value for quota in quotas] == [1e9]
        admin.alter_quotas({"user": "typed"}, {"producer_byte_rate": None})
        admin.set_password("typed", "secret", iterations=4096)
        users: list[ScramUser] = admin.list_users()
        assert set(users[0].mechanisms) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
        admin.remove_user("typed")
        rule = Acl("User:typed", "READ", "TOPIC", "orders")
        with suppress(FatalError):  # this broker has no authorizer
            admin.create_acls([rule])
        with suppress(FatalError):
            rules: list[Acl] = admin.describe_acls(AclFilter(name="orders"))
            assert rules
        with suppress(FatalError):
            admin.delete_acls([AclFilter(principal="User:typed")])
        assert admin.describe_configs("made")["retention.ms"] == "1000"
        admin.describe_configs(broker=broker.node_id, only_changed=True)
        place = TopicPartition("orders", 0)
        ends = admin.list_offsets({place: -1})
        admin.delete_records({place: ends[place].offset - 1})
        admin.delete_topics(["made"])
        assert "readers" in {group.group_id for group in admin.list_groups()}
        assert not admin.describe_group("readers").members
        offsets = admin.group_offsets("readers")
        admin.alter_group_offsets("readers", {place: offsets[place].offset})
        assert admin.group_lag("readers")[0].lag >= 0
        admin.delete_groups(["readers"])
        listed = admin.list_transactions(states=["CompleteCommit"])
        assert admin.describe_transaction(listed[0].transactional_id).state
        counted = TopicPartition("counted", 0)
        assert admin.describe_producers([counted])
        for hanging in admin.find_hanging([counted]):
            admin.abort_transaction(hanging)
        admin.fence_producer("counter")
        assert admin.settings.request_timeout_ms == 10_000


def main() -> None:
    with semel.Broker() as broker:
        where = broker.bootstrap_servers
        send(where)
        send_in_transactions({"bootstrap.servers": where, "linger.ms": "1"})
        read(where)
        look_around({"bootstrap.servers": where})
        transform(where)
        count_once(where)
        administer(where)
        try:
            Consumer(where).subscribe(["orders"])
        except SemelError as error:
            print(f"{error} ({error.code.name})")


if __name__ == "__main__":
    main()
