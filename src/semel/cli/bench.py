"""`semel bench`: what a cluster does for you: produce, consume, and transactions, measured."""

import argparse
import asyncio
import time
import uuid

from semel.cli.connecting import add_connection, add_json, client_settings, run_client
from semel.cli.printing import show
from semel.client import Admin, Consumer, NewTopic, Producer, TopicPartition

Row = tuple[str, str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    add_json(parser)
    parser.add_argument("-n", "--records", type=int, default=100_000)
    parser.add_argument("-s", "--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("-t", "--transactions", type=int, default=500)
    parser.add_argument("-p", "--partitions", type=int, default=6)


def run(arguments: argparse.Namespace) -> int:
    async def work() -> None:
        settings = client_settings(arguments)
        topic = f"semel-bench-{uuid.uuid4().hex[:8]}"
        async with Admin(settings=settings) as admin:
            await admin.create_topics([NewTopic(topic, arguments.partitions)])
            try:
                rows = [
                    await _produce(settings, topic, arguments),
                    await _consume(settings, topic, arguments),
                    *await _transact(settings, topic, arguments),
                ]
            finally:
                await admin.delete_topics([topic])
        show(("what", "rate", "detail"), rows, as_json=arguments.json)

    return run_client(work)


async def _produce(settings: dict[str, object], topic: str, arguments: argparse.Namespace) -> Row:
    value = bytes(arguments.size)
    async with Producer(settings=settings) as producer:
        started = time.perf_counter()
        for _ in range(arguments.records):
            await producer.send(topic, value)
        await producer.flush()
        seconds = time.perf_counter() - started
    return "produce", *_rate(arguments, seconds)


async def _consume(settings: dict[str, object], topic: str, arguments: argparse.Namespace) -> Row:
    reading = settings | {"auto.offset.reset": "earliest", "max.poll.records": 5_000}
    async with Consumer(settings=reading) as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(arguments.partitions)])
        started, count = time.perf_counter(), 0
        while count < arguments.records:
            count += len(await consumer.poll(1_000))
        seconds = time.perf_counter() - started
    return "consume", *_rate(arguments, seconds)


async def _transact(
    settings: dict[str, object], topic: str, arguments: argparse.Namespace
) -> list[Row]:
    """One record a transaction: one producer after the other, then sixteen at once."""

    async def loop(count: int) -> list[float]:
        mine = settings | {"transactional.id": f"semel-bench-{uuid.uuid4().hex[:8]}"}
        async with Producer(settings=mine) as producer:
            await producer.init_transactions()
            times = []
            for _ in range(count):
                started = time.perf_counter()
                async with producer.transaction():
                    await producer.send(topic, b"x")
                times.append(time.perf_counter() - started)
            return times

    rows: list[Row] = []
    for name, producers in (("transactions", 1), ("transactions, 16 producers", 16)):
        each = max(1, arguments.transactions // producers)
        started = time.perf_counter()
        results = await asyncio.gather(*(loop(each) for _ in range(producers)))
        seconds = time.perf_counter() - started
        times = sorted(one for result in results for one in result)
        median, late = times[len(times) // 2], times[int(len(times) * 0.99)]
        detail = f"p50 {median * 1000:.1f} ms, p99 {late * 1000:.1f} ms"
        rows.append((name, f"{len(times) / seconds:,.0f} /s", detail))
    return rows


def _rate(arguments: argparse.Namespace, seconds: float) -> tuple[str, str]:
    megabytes = arguments.records * arguments.size / 1e6 / seconds
    return f"{arguments.records / seconds:,.0f} records/s", f"{megabytes:,.1f} MB/s"
