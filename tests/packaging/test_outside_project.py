"""A project elsewhere that only says `pip install semel`: its tests have a Kafka, in any client."""

import venv
from pathlib import Path

import pytest
from tests.packaging.test_wheel import ROOT, built, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("wheel")]

CLIENTS = ("aiokafka", "confluent-kafka", "kafka-python", "pytest", "pytest-asyncio")
TESTS = """
import asyncio
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer


def test_confluent_kafka_in_a_transaction(kafka):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"one", key=b"k")
    producer.flush()
    assert [record.outcome for record in kafka.all_records("orders")] == ["open"]
    producer.commit_transaction()
    assert [record.value for record in kafka.committed("orders")] == [b"one"]


def test_confluent_kafka_meets_a_fault_and_reads(kafka):
    fault = kafka.faults.on("Produce", topic="orders").close_after().once()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    producer.produce("orders", b"one")
    producer.flush(30)
    assert fault.struck == 1
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": "g",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    assert message.value() == b"one"
    consumer.commit(message, asynchronous=False)
    consumer.close()
    assert kafka.committed_offsets("g") == {("orders", 0): 1}
    assert len(kafka.committed("orders")) == 1


async def test_aiokafka(kafka):
    kafka.topic("orders", partitions=1)
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        await producer.send_and_wait("orders", b"one")
    async with AIOKafkaConsumer(
        "orders", bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        assert (await consumer.getone()).value == b"one"
    assert await kafka.wait_until_async(lambda: kafka.committed("orders"))


def test_kafka_python(kafka):
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    producer.send("orders", b"one").get(30)
    producer.close()
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest"
    )
    assert next(consumer).value == b"one"
    consumer.close()
"""
SETTINGS = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"


def test_a_project_elsewhere_has_a_kafka_in_its_tests(tmp_path: Path) -> None:
    wheel = built(ROOT, tmp_path / "wheel")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, *CLIENTS)
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_orders.py").write_text(TESTS)
    (project / "pytest.ini").write_text(SETTINGS)
    alone = run(python, "-m", "pytest", "-p", "no:cacheprovider", project)
    assert "4 passed" in alone
    semel = tmp_path / "venv" / "bin" / "semel"
    assert "4 passed" in run(semel, "run", "--", python, "-m", "pytest", project)
