"""Transactions per second, commit latency and broker CPU per transaction, beside Apache Kafka.

librdkafka is the client of the first three; one librdkafka producer is itself the limit near 500
one-record transactions a second, so the last workload speaks the protocol through raw sockets.
"""

import threading
import time
import uuid
from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.raw_client import RawTransactions
from benchmarks.side_by_side import Report, Side, Work, both_brokers, measure

TOPIC = "bench-transactions"
PARTITIONS = 10


def run(rounds: int = 5) -> None:
    report = Report("Transactions")
    with both_brokers() as sides:
        for side in sides:
            make_topic(side)
        report.add("one record, raw client", measure(sides, raw(400), "txn", rounds), goal=3.0)
        report.add(
            "one record, raw client, version 2", measure(sides, raw(400, new=True), "txn", rounds)
        )
        report.add(
            "one record, librdkafka", measure(sides, one_producer(200, 1), "txn", rounds), goal=1.8
        )
        report.add(
            "100 records over 10 partitions", measure(sides, one_producer(100, 100), "txn", rounds),
            goal=2.7,
        )  # fmt: skip
        report.add(
            "16 producers, one record", measure(sides, crowd(16, 60), "txn", rounds), goal=3.0
        )
    report.finish()


def make_topic(side: Side) -> None:
    admin = AdminClient({"bootstrap.servers": side.bootstrap})
    [future] = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values()
    future.result()


def producer(side: Side) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": side.bootstrap,
            "transactional.id": f"bench-{uuid.uuid4()}",
            "linger.ms": 0,
        }
    )
    made.init_transactions(30)
    return made


def transact(client: Producer, transactions: int, records: int) -> list[float]:
    latencies = []
    for _ in range(transactions):
        client.begin_transaction()
        for number in range(records):
            client.produce(TOPIC, b"x" * 100, partition=number % PARTITIONS)
        client.flush()
        began = time.perf_counter()
        client.commit_transaction(30)
        latencies.append((time.perf_counter() - began) * 1000)
    return latencies


def one_producer(transactions: int, records: int) -> Callable[[Side], Work]:
    clients: dict[str, Producer] = {}

    def work(side: Side) -> Work:
        client = clients.get(side.name) or clients.setdefault(side.name, producer(side))
        began = time.perf_counter()
        latencies = transact(client, transactions, records)
        return Work(transactions, latencies, time.perf_counter() - began)

    return work


def crowd(producers: int, transactions: int) -> Callable[[Side], Work]:
    clients: dict[str, list[Producer]] = {}

    def work(side: Side) -> Work:
        if side.name not in clients:
            clients[side.name] = [producer(side) for _ in range(producers)]
        latencies: list[float] = []
        threads = [
            threading.Thread(target=lambda c=c: latencies.extend(transact(c, transactions, 1)))
            for c in clients[side.name]
        ]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return Work(producers * transactions, latencies, time.perf_counter() - began)

    return work


def raw(transactions: int, new: bool = False) -> Callable[[Side], Work]:
    clients: dict[str, RawTransactions] = {}

    def work(side: Side) -> Work:
        if side.name not in clients:
            name = f"raw-{uuid.uuid4()}"
            clients[side.name] = RawTransactions(side.bootstrap, TOPIC, name, new)
        began = time.perf_counter()
        latencies = clients[side.name].run(transactions)
        return Work(transactions, latencies, time.perf_counter() - began)

    return work
