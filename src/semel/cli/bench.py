"""`semel bench`: what a cluster does for you: produce, consume, and transactions, measured."""

import argparse
import asyncio
import json
import time
import uuid
from typing import Any

from semel.cli.commands import CONNECTION, JSON, CommandTable, Option, whole
from semel.cli.connecting import client_settings, run_client
from semel.cli.printing import show
from semel.client import Admin, Consumer, NewTopic, Producer, TopicPartition

#: What was measured, with numbers; JSON shows it as it is.
Row = dict[str, Any]
_PRODUCERS = (1, 16)


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
                    *[await _transact(settings, topic, arguments, n) for n in _PRODUCERS],
                ]
            finally:
                await admin.delete_topics([topic])
        _show(rows, arguments.json)

    return run_client(work)


async def _produce(settings: dict[str, Any], topic: str, arguments: argparse.Namespace) -> Row:
    value = bytes(arguments.size)
    async with Producer(settings=settings) as producer:
        started = time.perf_counter()
        for _ in range(arguments.records):
            await producer.send(topic, value)
        await producer.flush()
        seconds = time.perf_counter() - started
    return {"what": "produce"} | _rate(arguments, seconds)


async def _consume(settings: dict[str, Any], topic: str, arguments: argparse.Namespace) -> Row:
    reading = settings | {"auto.offset.reset": "earliest", "max.poll.records": 5_000}
    async with Consumer(settings=reading) as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(arguments.partitions)])
        started, count = time.perf_counter(), 0
        while count < arguments.records:
            count += len(await consumer.poll(1_000))
        seconds = time.perf_counter() - started
    return {"what": "consume"} | _rate(arguments, seconds)


async def _transact(
    settings: dict[str, Any], topic: str, arguments: argparse.Namespace, producers: int
) -> Row:
    """One record a transaction: one after the other, by so many producers at once."""
    each = max(1, arguments.transactions // producers)
    started = time.perf_counter()
    results = await asyncio.gather(*(_end(settings, topic, each) for _ in range(producers)))
    seconds = time.perf_counter() - started
    times = sorted(one for result in results for one in result)
    return {
        "what": "transactions",
        "producers": producers,
        "transactions": len(times),
        "seconds": round(seconds, 6),
        "transactions_per_second": round(len(times) / seconds, 1),
        "p50_ms": round(times[len(times) // 2] * 1000, 3),
        "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 3),
    }


async def _end(settings: dict[str, Any], topic: str, count: int) -> list[float]:
    """How long each transaction of a producer took, in seconds."""
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


def _rate(arguments: argparse.Namespace, seconds: float) -> Row:
    return {
        "records": arguments.records,
        "bytes": arguments.records * arguments.size,
        "seconds": round(seconds, 6),
        "records_per_second": round(arguments.records / seconds, 1),
        "megabytes_per_second": round(arguments.records * arguments.size / 1e6 / seconds, 3),
    }


def _show(rows: list[Row], as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    shown = [
        (
            row["what"],
            f"{row['records_per_second']:,.0f} records/s",
            f"{row['megabytes_per_second']:,.1f} MB/s",
        )
        if "records" in row
        else (
            f"{row['what']}, {row['producers']} producer{'s' if row['producers'] > 1 else ''}",
            f"{row['transactions_per_second']:,.0f} /s",
            f"p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms",
        )
        for row in rows
    ]
    show(("what", "rate", "detail"), shown, as_json=False)


COMMAND = CommandTable(
    run=run,
    options=(
        Option("-n --records", "how many records", value="NUMBER", parse=whole(1),
               default=100_000),
        Option("-s --size", "bytes of a value", value="NUMBER", parse=whole(0), default=100),
        Option("-t --transactions", "how many transactions, of one record each", value="NUMBER",
               parse=whole(1), default=500),
        Option("-p --partitions", "of the topic that is made for this and deleted afterwards",
               value="NUMBER", parse=whole(1), default=6),
        *CONNECTION,
        JSON,
    ),
    notes="Other programs on this machine slow it down: for numbers to compare, see benchmarks/.",
)  # fmt: skip
