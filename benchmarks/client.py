"""The client beside aiokafka, kafka-python and confluent-kafka (librdkafka), on one Semel broker.

Rounds of the contenders alternate, medians count, the broker keeps its logs in memory. All of them
produce idempotently with acks=all into six partitions; records have no keys, values are random.
Batch sizes are each client's default unless a row says otherwise: 256 KiB for Semel, 16 KiB for
aiokafka and kafka-python, 1 MB for librdkafka. CPU is the client's own, threads included.
"""

import asyncio
import gc
import os
import platform
import signal
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from rich.console import Console
from rich.table import Table
from tests.support.brokers.process import SemelProcess

from benchmarks.side_by_side import PAGE_BYTES, Work, in_memory, touch_memory
from semel.client import Consumer, Producer, RetriableError
from semel.columnar import kernels

PARTITIONS = 6
EQUAL_BATCH = 262_144
RUN = 1_000  # records of one produce_batch

Contender = Callable[[], Work]


@dataclass
class Rounds:
    """What one contender did in one row of the report."""

    per_second: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)

    def percentile_ms(self, percent: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def compare(contenders: dict[str, Contender], rounds: int, megabytes: int) -> dict[str, Rounds]:
    """The first round warms up and is not counted."""
    results = {name: Rounds() for name in contenders}
    for number in range(rounds + 1):
        for name, contend in contenders.items():
            touch_memory(megabytes)
            gc.collect()
            cpu, began = time.process_time(), time.perf_counter()
            work = contend()
            seconds = work.seconds or time.perf_counter() - began
            if number:
                results[name].per_second.append(work.amount / seconds)
                results[name].cpu_us.append((time.process_time() - cpu) * 1e6 / work.amount)
                results[name].latencies_ms += work.latencies_ms
    return results


class Report:
    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.table = Table(title=f"Client, Python {platform.python_version()}, {rounds} rounds")
        for heading in ("workload", "client", "per second", "Semel is", "goal", "CPU µs",
                        "p50 ms", "p99 ms"):  # fmt: skip
            self.table.add_column(heading, justify="left" if heading == "workload" else "right")

    def run(
        self, name: str, contenders: dict[str, Contender], goal: str, megabytes: int = 0
    ) -> None:
        print(f"  {name}", file=sys.stderr)
        results = compare(contenders, self.rounds, megabytes)
        ours = statistics.median(next(iter(results.values())).per_second)
        for number, (client, result) in enumerate(results.items()):
            rate = statistics.median(result.per_second)
            times = [f"{result.percentile_ms(p):.2f}" if result.latencies_ms else ""
                     for p in (50, 99)]  # fmt: skip
            self.table.add_row(
                "" if number else name,
                client,
                f"{rate:,.0f}",
                f"{ours / rate:.2f}×" if number else "",
                "" if number else goal,
                f"{statistics.median(result.cpu_us):,.2f}",
                *times,
            )
        self.table.add_section()


class Bench:
    def __init__(self, bootstrap: str, rounds: int) -> None:
        self.bootstrap = bootstrap
        self.report = Report(rounds)

    def make_topic(self, name: str) -> str:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        new = confluent_kafka.admin.NewTopic(name, PARTITIONS, 1)
        [future] = admin.create_topics([new]).values()
        future.result()
        return name

    # Record by record

    def records(self, size: int, count: int) -> None:
        topic, value = self.make_topic(f"records-{size}"), os.urandom(size)

        def ours() -> Work:
            return asyncio.run(self._send_records(topic, value, count))

        def aiokafka(batch: int) -> Contender:
            return lambda: asyncio.run(self._send_aiokafka(topic, value, count, batch))

        def kafka_python(batch: int) -> Contender:
            return lambda: self._send_kafka_python(topic, value, count, batch)

        for batch, what in ((16_384, "default batches"), (EQUAL_BATCH, "equal batches")):
            contenders = {
                "Semel": ours,
                "aiokafka": aiokafka(batch),
                "kafka-python": kafka_python(batch),
            }
            self.report.run(f"send {size} B, {what}", contenders, "≥ 3×")

    async def _send_records(self, topic: str, value: bytes, count: int) -> Work:
        async with Producer(self.bootstrap) as producer:
            await producer.partitions_for(topic)
            began = time.perf_counter()
            for _ in range(count):
                await producer.send(topic, value)
            await producer.flush()
            return Work(count, seconds=time.perf_counter() - began)

    async def _send_aiokafka(self, topic: str, value: bytes, count: int, batch: int) -> Work:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            linger_ms=5,
            max_batch_size=batch,
        )
        await producer.start()
        try:
            await producer.partitions_for(topic)
            began = time.perf_counter()
            for _ in range(count):
                await producer.send(topic, value)
            await producer.flush()
            return Work(count, seconds=time.perf_counter() - began)
        finally:
            await producer.stop()

    def _send_kafka_python(self, topic: str, value: bytes, count: int, batch: int) -> Work:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=5,
            batch_size=batch,
        )
        try:
            producer.partitions_for(topic)
            began = time.perf_counter()
            for _ in range(count):
                producer.send(topic, value)
            producer.flush()
            return Work(count, seconds=time.perf_counter() - began)
        finally:
            producer.close()

    # Tables

    def tables(self, size: int, count: int) -> None:
        topic, values = self.make_topic(f"tables-{size}"), [os.urandom(size)] * count
        table = pa.table({"value": pa.array(values, pa.binary())})
        megabytes = 3 * count * size // 1_000_000
        self.report.run(
            f"send a table, {size} B",
            {
                "Semel": lambda: asyncio.run(self._send_table(topic, table)),
                "produce_batch": lambda: self._produce(topic, values, many=True),
                "produce": lambda: self._produce(topic, values, many=False),
            },
            "≥ 1.5×",
            megabytes,
        )
        self.report.run(
            f"receive a table, {size} B, read_committed",
            {
                "Semel": lambda: asyncio.run(self._receive_table(topic, count)),
                "consume": lambda: self._consume(topic, count),
            },
            "≥ 1.5×",
            megabytes,
        )

    async def _send_table(self, topic: str, table: pa.Table) -> Work:
        async with Producer(self.bootstrap) as producer:
            await producer.partitions_for(topic)
            began = time.perf_counter()
            written = await (await producer.send_table(topic, table))
            assert written.rows == table.num_rows
            return Work(written.rows, seconds=time.perf_counter() - began)

    def _produce(self, topic: str, values: list[bytes], many: bool) -> Work:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 1 << 19,
            }
        )
        producer.list_topics(topic, timeout=30)
        messages = [{"value": value} for value in values[:RUN]]
        began = time.perf_counter()
        if many:
            for call in range(len(values) // RUN):
                while len(producer) > 400_000:
                    producer.poll(0.01)
                producer.produce_batch(topic, messages, partition=call % PARTITIONS)
                producer.poll(0)
        else:
            for value in values:
                while len(producer) > 400_000:
                    producer.poll(0.01)
                producer.produce(topic, value)
        assert producer.flush(120) == 0
        return Work(len(values), seconds=time.perf_counter() - began)

    async def _receive_table(self, topic: str, count: int) -> Work:
        async with Consumer(self.bootstrap, isolation_level="read_committed") as consumer:
            places = [(topic, number) for number in range(PARTITIONS)]
            consumer.assign(places)
            consumer.seek_to_beginning()
            began, rows = time.perf_counter(), 0
            while rows < count:
                rows += (await consumer.poll_table(10_000)).num_rows
            return Work(rows, seconds=time.perf_counter() - began)

    def _consume(self, topic: str, count: int) -> Work:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"bench-{uuid.uuid4()}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "queued.max.messages.kbytes": 1 << 17,
            }
        )
        consumer.list_topics(topic, timeout=30)
        places = [confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
        began, rows = time.perf_counter(), 0
        consumer.assign(places)
        while rows < count:
            rows += len(consumer.consume(10_000, timeout=30))
        seconds = time.perf_counter() - began
        consumer.close()
        return Work(rows, seconds=seconds)

    # Transactions

    def transactions(self, count: int) -> None:
        topic = self.make_topic("transactions")
        self.report.run(
            "one-record transactions",
            {
                "Semel": lambda: asyncio.run(self._transact(topic, count)),
                "confluent-kafka": lambda: self._transact_confluent(topic, count),
            },
            "p50, p99 ≤",
        )

    async def _transact(self, topic: str, count: int) -> Work:
        async with Producer(self.bootstrap, transactional_id=f"b-{uuid.uuid4()}") as producer:
            await producer.init_transactions()

            async def transact() -> None:
                async with producer.transaction():
                    await producer.send(topic, b"x" * 100)

            return await _timed(transact, count)

    def _transact_confluent(self, topic: str, count: int) -> Work:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": f"b-{uuid.uuid4()}",
                "linger.ms": 0,
            }
        )
        producer.init_transactions(30)

        async def transact() -> None:
            producer.begin_transaction()
            producer.produce(topic, b"x" * 100)
            producer.commit_transaction(30)

        return asyncio.run(_timed(transact, count))

    # A broker that has stopped answering

    def stalled(self, broker: SemelProcess) -> None:
        topic = self.make_topic("stalled")
        grown = asyncio.run(self._stall(broker, topic))
        self.report.table.add_row(
            "broker stopped, sending for 3 s", "Semel", f"+{grown:,.0f} MB", "", "bounded"
        )

    async def _stall(self, broker: SemelProcess, topic: str) -> float:
        values = pa.table({"value": pa.array([bytes(1024)] * 50_000, pa.binary())})
        async with Producer(self.bootstrap, max_block_ms=1_500) as producer:
            await producer.partitions_for(topic)
            before = _resident_mb()
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                for send in (
                    lambda: producer.send(topic, bytes(1024)),
                    lambda: producer.send_table(topic, values),
                ):
                    try:
                        while True:
                            await send()
                    except RetriableError:
                        pass  # the buffer is full, and stays so
                return _resident_mb() - before
            finally:
                os.kill(broker.pid, signal.SIGCONT)


async def _timed(transact: Callable[[], Awaitable[None]], count: int) -> Work:
    for _ in range(20):
        await transact()
    latencies = []
    began = time.perf_counter()
    for _ in range(count):
        started = time.perf_counter()
        await transact()
        latencies.append((time.perf_counter() - started) * 1000)
    return Work(count, latencies, time.perf_counter() - began)


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1e6


def run(rounds: int = 5, only: tuple[str, ...] = ()) -> None:
    kernels.load()
    with in_memory(), SemelProcess() as broker:
        bench = Bench(broker.bootstrap, rounds)
        parts: dict[str, Callable[[], Any]] = {
            "transactions": lambda: bench.transactions(500),
            "records": lambda: (bench.records(100, 50_000), bench.records(1024, 30_000)),
            "tables": lambda: (bench.tables(100, 400_000), bench.tables(1024, 100_000)),
            "stalled": lambda: bench.stalled(broker),
        }
        for name, part in parts.items():
            if not only or name in only:
                part()
    Console(width=130).print(bench.report.table)


if __name__ == "__main__":
    run(int(os.environ.get("ROUNDS", "5")), tuple(sys.argv[1:]))
