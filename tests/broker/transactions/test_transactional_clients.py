"""Transactions of real clients: librdkafka, aiokafka and kafka-python, each unchanged."""

import gc
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Confluent
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Python
from kafka.errors import KafkaError

from semel.broker.server import Broker

TOPIC = "t"
WAIT_S = 20


@pytest.fixture
def broker(tmp_path):
    """In a thread of its own, for clients that block."""
    settings = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 20}
    with Broker(tmp_path / "data", settings=settings) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic("source", 1, 1)])[TOPIC].result(WAIT_S)
        yield running


def committed(broker, isolation="read_committed", topic=TOPIC):
    """Every value a librdkafka consumer reads up to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([Confluent(topic, 0, 0)])
    values = []
    while (message := consumer.poll(WAIT_S)) is not None and not message.error():
        values.append(message.value())
    consumer.close()
    return values


class TestLibrdkafka:
    def producer(self, broker, name="etl", **more):
        settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name}
        producer = Producer(settings | {key.replace("_", "."): more[key] for key in more})
        producer.init_transactions(WAIT_S)
        return producer

    def write(self, producer, *values):
        producer.begin_transaction()
        for value in values:
            producer.produce(TOPIC, value)
        producer.flush(WAIT_S)

    def test_committed_is_read_and_aborted_is_not(self, broker):
        producer = self.producer(broker)
        for number in range(6):
            self.write(producer, b"%d a" % number, b"%d b" % number)
            if number % 2:
                producer.abort_transaction(WAIT_S)
            else:
                producer.commit_transaction(WAIT_S)
        assert committed(broker) == [b"0 a", b"0 b", b"2 a", b"2 b", b"4 a", b"4 b"]
        assert len(committed(broker, "read_uncommitted")) == 12

    def test_an_open_transaction_holds_readers_back(self, broker):
        producer, other = self.producer(broker), self.producer(broker, "other")
        self.write(producer, b"open")
        self.write(other, b"done")
        other.commit_transaction(WAIT_S)
        assert committed(broker) == []
        producer.commit_transaction(WAIT_S)
        assert committed(broker) == [b"open", b"done"]

    def test_a_second_producer_fences_the_first(self, broker):
        old = self.producer(broker)
        self.write(old, b"lost")
        new = self.producer(broker)
        with pytest.raises(KafkaException) as caught:
            old.commit_transaction(WAIT_S)
        assert caught.value.args[0].fatal()
        self.write(new, b"kept")
        new.commit_transaction(WAIT_S)
        assert committed(broker) == [b"kept"]

    def test_a_timed_out_transaction_cannot_be_committed(self, broker):
        producer = self.producer(broker, transaction_timeout_ms=1000)
        self.write(producer, b"late")
        machine = broker.transactions.shard_of("etl").machine
        while machine.open_ids:
            producer.poll(0.05)
        with pytest.raises(KafkaException):
            producer.commit_transaction(WAIT_S)
        assert committed(broker) == []

    def test_offsets_are_committed_with_the_transaction(self, broker):
        plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
        plain.produce("source", b"in")
        plain.flush(WAIT_S)
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["source"])
        message = consumer.poll(WAIT_S)
        producer = self.producer(broker)
        for commit in (False, True):
            self.write(producer, message.value().upper())
            position = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(
                position, consumer.consumer_group_metadata(), WAIT_S
            )
            if commit:
                producer.commit_transaction(WAIT_S)
            else:
                producer.abort_transaction(WAIT_S)
            [found] = consumer.committed([Confluent("source", 0)], WAIT_S)
            assert found.offset == (1 if commit else -1001)
        consumer.close()
        assert committed(broker) == [b"IN"]


class TestAiokafka:
    async def test_commit_abort_and_fencing(self, broker):
        servers = broker.bootstrap_servers
        old = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="aio")
        await old.start()
        async with old.transaction():
            await old.send_and_wait(TOPIC, b"kept")
        await old.begin_transaction()
        await old.send_and_wait(TOPIC, b"aborted")
        await old.abort_transaction()
        new = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="aio")
        await new.start()
        await old.begin_transaction()
        with pytest.raises(ProducerFenced):
            await old.send_and_wait(TOPIC, b"zombie")
        async with new.transaction():
            await new.send_and_wait(TOPIC, b"new")
        await new.stop()
        with suppress(ProducerFenced):  # it may say so once more
            await old.stop()
        # It leaves a task behind whose error nobody took. Collected while Python compiles a module,
        # that log line trips CPython 3.11 ("AST constructor recursion depth mismatch").
        del old
        gc.collect()

        consumer = AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
        await consumer.start()
        partition = TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        assert [(await consumer.getone()).value for _ in range(2)] == [b"kept", b"new"]
        await consumer.stop()


class TestKafkaPython:
    def test_commit_and_abort(self, broker):
        servers = broker.bootstrap_servers
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id="kp")
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(TOPIC, b"%d" % number).get(WAIT_S)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.close()
        consumer = KafkaConsumer(
            bootstrap_servers=servers,
            isolation_level="read_committed",
            consumer_timeout_ms=1_000,
        )
        consumer.assign([Python(TOPIC, 0)])
        consumer.seek_to_beginning()
        assert [message.value for message in consumer] == [b"0", b"2"]
        consumer.close()

    def test_a_second_producer_fences_the_first(self, broker):
        servers = broker.bootstrap_servers
        old = KafkaProducer(bootstrap_servers=servers, transactional_id="kp")
        old.init_transactions()
        old.begin_transaction()
        old.send(TOPIC, b"lost").get(WAIT_S)
        new = KafkaProducer(bootstrap_servers=servers, transactional_id="kp")
        new.init_transactions()
        with pytest.raises(KafkaError):
            old.commit_transaction()
        assert committed(broker) == []
        old.close(timeout=1)
        new.close()
