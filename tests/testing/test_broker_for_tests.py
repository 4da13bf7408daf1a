"""What a test asks the broker: topics, records and what became of them, offsets, waiting."""

import asyncio
import threading
import unittest
from pathlib import Path
from typing import Any

import pytest

from semel.client import Producer as AsyncioProducer
from semel.client.blocking import Consumer, Producer
from semel.testing import Kafka, NotInTime, UnknownTopic


def values(records: Any) -> list[bytes | None]:
    return [record.value for record in records]


def test_what_is_produced_is_committed(kafka: Kafka) -> None:
    [one, two] = kafka.produce("orders", "one", b"two", key="k", headers={"h": b"1"})
    assert kafka.committed("orders") == [one, two]
    assert (one.key, one.value, one.headers, one.outcome) == (
        b"k",
        b"one",
        (("h", b"1"),),
        "committed",
    )
    assert (two.offset, two.transactional_id, two.producer_id) == (1, None, None)


def test_a_key_chooses_the_partition_as_the_clients_do(kafka: Kafka) -> None:
    kafka.topic("orders", partitions=7)
    with Producer(kafka.bootstrap_servers) as producer:
        for key in (b"a", b"b", b"c"):
            [ours] = kafka.produce("orders", "x", key=key)
            assert producer.send_and_wait("orders", b"y", key).partition == ours.partition


def test_clients_read_what_the_test_produced(kafka: Kafka) -> None:
    kafka.produce("orders", "one", None)
    with Consumer(kafka.bootstrap_servers, group_id="g") as consumer:
        consumer.subscribe(["orders"])
        assert values(consumer.poll(timeout_ms=10_000)) == [b"one", None]
        consumer.commit()
    assert kafka.committed_offsets("g") == {("orders", 0): 2}


def test_each_record_says_what_became_of_its_transaction(kafka: Kafka) -> None:
    with Producer(kafka.bootstrap_servers, transactional_id="t") as producer:
        with producer.transaction():
            producer.send("orders", b"kept")
        producer.begin_transaction()
        producer.send_and_wait("orders", b"undone")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send_and_wait("orders", b"pending")
        kafka.produce("orders", "behind it")
        told = [(record.value, record.outcome) for record in kafka.all_records("orders")]
        assert told == [
            (b"kept", "committed"),
            (b"undone", "aborted"),
            (b"pending", "open"),
            (b"behind it", "committed"),
        ]
        assert values(kafka.committed("orders")) == [b"kept"]
        assert kafka.all_records("orders")[0].transactional_id == "t"
        [open_one] = kafka.open_transactions
        assert (open_one.transactional_id, open_one.state) == ("t", "Ongoing")
        assert open_one.partitions == (("orders", 0),)
    assert values(kafka.committed("orders")) == [b"kept", b"behind it"]
    assert kafka.open_transactions == []


def test_records_of_one_partition_alone_can_be_asked_for(kafka: Kafka) -> None:
    kafka.topic("orders", partitions=2)
    kafka.produce("orders", "zero", partition=0)
    kafka.produce("orders", "one", partition=1)
    assert values(kafka.committed("orders", partition=1)) == [b"one"]
    assert values(kafka.committed("orders")) == [b"zero", b"one"]
    with pytest.raises(IndexError, match="orders has partitions 0 to 1, not 2"):
        kafka.committed("orders", partition=2)
    with pytest.raises(IndexError, match="orders has partitions 0 to 1, not 2"):
        kafka.produce("orders", "two", partition=2)


def test_a_topic_that_is_not_there_is_named_with_the_nearest(kafka: Kafka) -> None:
    kafka.topic("orders")
    with pytest.raises(UnknownTopic, match=r"no topic 'ordres'; did you mean 'orders'\?"):
        kafka.committed("ordres")


def test_a_topic_is_made_with_its_configs_and_once(kafka: Kafka) -> None:
    assert kafka.topic("orders", configs={"cleanup.policy": "compact"}) == "orders"
    with pytest.raises(ValueError, match="there is a topic 'orders' already"):
        kafka.topic("orders")
    with pytest.raises(ValueError, match="Unknown topic config name: retention"):
        kafka.topic("others", configs={"retention": 1})
    with pytest.raises(ValueError, match="at least one partition, not 0"):
        kafka.topic("others", partitions=0)
    with pytest.raises(ValueError, match="characters other than ASCII"):
        kafka.topic("a b")
    assert kafka.topics == ["orders"]


def test_a_topic_without_a_name_gets_one_of_its_own(kafka: Kafka) -> None:
    assert kafka.topic() != kafka.topic()


def test_a_topic_that_compresses_takes_what_is_produced(kafka: Kafka) -> None:
    kafka.topic("small", configs={"compression.type": "zstd"})
    kafka.produce("small", "one", "two")
    assert values(kafka.committed("small")) == [b"one", b"two"]


def test_what_cannot_be_produced_is_refused_with_advice(kafka: Kafka) -> None:
    with pytest.raises(TypeError, match=r"a value is bytes, str or None, not dict.*json.dumps"):
        kafka.produce("orders", {"id": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nothing to produce"):
        kafka.produce("orders")
    kafka.topic("tiny", configs={"max.message.bytes": 100})
    with pytest.raises(RuntimeError, match="tiny-0 did not take the records: MESSAGE_TOO_LARGE"):
        kafka.produce("tiny", "x" * 200)


def test_waiting_ends_with_what_another_thread_brings(kafka: Kafka) -> None:
    thread = threading.Thread(target=lambda: kafka.produce("orders", "late"))
    thread.start()
    assert values(kafka.wait_until(lambda: kafka.committed("orders"))) == [b"late"]
    thread.join()


def test_waiting_in_vain_says_what_was_seen_last_and_what_the_broker_saw(kafka: Kafka) -> None:
    with Producer(kafka.bootstrap_servers, client_id="shop") as producer:
        producer.send_and_wait("orders", b"one")
    with pytest.raises(NotInTime) as failed:
        kafka.wait_until(lambda: len(kafka.committed("orders")) == 2, timeout=0.01)
    assert "it was False at last" in str(failed.value)
    assert "shop: Produce v13 topic orders: ok" in str(failed.value)
    assert "orders-0: offsets 0 to 1" in str(failed.value)
    with pytest.raises(NotInTime, match="no topic 'never'"):
        kafka.wait_until(lambda: kafka.committed("never"), timeout=0.01)


async def test_waiting_in_asyncio_lets_the_loop_go_on() -> None:
    async with Kafka() as kafka, AsyncioProducer(kafka.bootstrap_servers) as producer:
        task = asyncio.ensure_future(producer.send_and_wait("orders", b"one"))
        found = await kafka.wait_until_async(lambda: kafka.committed("orders"))
        assert values(found) == [b"one"]
        await task
        with pytest.raises(RuntimeError, match=r"await kafka\.wait_until_async"):
            kafka.wait_until(lambda: True)


def test_a_restart_keeps_data_port_and_open_transactions(kafka: Kafka) -> None:
    where = kafka.bootstrap_servers
    with Producer(where, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_and_wait("orders", b"one")
        kafka.restart()
        assert kafka.bootstrap_servers == where
        assert [txn.transactional_id for txn in kafka.open_transactions] == ["t"]
        producer.commit_transaction()
    assert values(kafka.committed("orders")) == [b"one"]


def test_a_stopped_broker_says_what_to_do(kafka: Kafka) -> None:
    kafka.stop()
    with pytest.raises(RuntimeError, match=r"not running: use `with Kafka\(\) as kafka:`"):
        kafka.produce("orders", "one")
    assert kafka.report() == "the broker is stopped"
    kafka.start()
    kafka.produce("orders", "one")


def test_given_data_stays(tmp_path: Path) -> None:
    with Kafka(data=tmp_path / "data") as kafka:
        kafka.produce("orders", "one")
    with Kafka(data=tmp_path / "data") as kafka:
        assert values(kafka.committed("orders")) == [b"one"]


def test_settings_are_kafkas() -> None:
    with Kafka(settings={"num.partitions": 3}) as kafka:
        kafka.produce("orders", "one", partition=2)
        assert len(kafka.committed("orders", partition=2)) == 1


def test_temporary_data_is_gone_in_the_end() -> None:
    with Kafka() as kafka:
        directory = kafka._data()
        assert directory.exists()
    assert not directory.exists()


class UnittestCase(unittest.TestCase):
    def setUp(self) -> None:
        self.kafka = self.enterContext(Kafka())

    def test_it_serves_unittest(self) -> None:
        self.kafka.produce("orders", "one")
        assert values(self.kafka.committed("orders")) == [b"one"]
