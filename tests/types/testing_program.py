"""A user's tests that touch all of `semel.testing`, typed as a strict user types them."""

import asyncio

import pytest

from semel.client.blocking import Producer
from semel.testing import (
    Fault,
    Faults,
    Kafka,
    NotInTime,
    OpenTransaction,
    StoredRecord,
    UnknownTopic,
    UnusedFault,
)


@pytest.fixture(scope="session")
def kafka_settings() -> dict[str, object]:
    return {"num.partitions": 2}


def test_asking(kafka: Kafka) -> None:
    name: str = kafka.topic("orders", partitions=3, configs={"retention.ms": 1_000_000})
    stored: list[StoredRecord] = kafka.produce(
        name, "one", b"two", None, key="k", headers={"h": b"v"}, timestamp_ms=1_700_000_000_000
    )
    assert kafka.committed(name, partition=stored[0].partition) == stored
    assert kafka.all_records(name) == stored
    assert [record.outcome == "open" for record in stored] == [False] * 3
    assert kafka.topics == [name]
    assert kafka.port == int(kafka.bootstrap_servers.rpartition(":")[2])
    offsets: dict[tuple[str, int], int] = kafka.committed_offsets("group")
    assert offsets == {}
    found: list[StoredRecord] = kafka.wait_until(lambda: kafka.committed(name), timeout=5)
    assert found[0].value == b"one"
    assert "orders-0" in kafka.report()
    with pytest.raises(UnknownTopic):
        kafka.committed("others")
    with pytest.raises(NotInTime):
        kafka.wait_until(lambda: False, timeout=0)


def test_faults(kafka: Kafka) -> None:
    faults: Faults = kafka.faults
    fault: Fault = faults.on("InitProducerId", client_id="shop").fail("NOT_COORDINATOR").once()
    others = [
        faults.on("EndTxn", transactional_id="t").drop_reply().once(),
        faults.on("EndTxn").drop_request().times(2),
        faults.on("Produce", topic="orders").close_before().on_call(3),
        faults.on("Produce").close_after().always(),
        faults.on("Heartbeat", group_id="g").delay(1.5).once(),
        faults.on("Heartbeat").delay_reply(1.5).once(),
        faults.on("Fetch").hold().once(),
    ]
    with faults.on("Metadata").hold_reply().once() as held:
        held.release()
    with Producer(
        kafka.bootstrap_servers, client_id="shop", transactional_id="t", retry_backoff_ms=1
    ) as producer:
        producer.init_transactions()
    fault.wait(timeout=5)
    assert fault.struck == 1
    assert [each for each in others if each in faults.unused]
    with pytest.raises(UnusedFault):
        kafka.verify()
    others[0].lift()
    faults.clear()


def test_the_broker(kafka: Kafka) -> None:
    with Producer(kafka.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"one").result()
        opened: list[OpenTransaction] = kafka.open_transactions
        assert opened[0].transactional_id == "t"
        kafka.move_coordinator(transactional_id="t")
        kafka.clock.advance(milliseconds=1)
        producer.commit_transaction()
        kafka.fence("t")
    kafka.disk.fill()
    assert kafka.disk.is_full
    assert kafka.disk.refused >= 0
    kafka.disk.free()
    with pytest.raises(LookupError):
        kafka.expire_session("g", member_id="m")
    kafka.restart()
    kafka.stop()
    kafka.start()
    assert kafka.clock.now_ms() > 0


def test_shared(kafka_module: Kafka, kafka_session: Kafka) -> None:
    assert kafka_module is not kafka_session
    kafka_module.begin_test()


def test_asyncio() -> None:
    async def main() -> None:
        async with Kafka(settings={"num.partitions": 1}) as kafka:
            fault = kafka.faults.on("Produce").delay(0.01).once()
            kafka.produce("orders", "one")
            assert await kafka.wait_until_async(lambda: kafka.committed("orders"), timeout=5)
            with pytest.raises(NotInTime):
                await fault.wait_async(timeout=0)
            kafka.faults.clear()
        kafka.close()

    asyncio.run(main())
