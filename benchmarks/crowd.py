"""Many transactional ids: what a transaction costs when 100,000 are known and 10,000 are open.

    python -m benchmarks crowd

In process and without a network, so that only the coordinator is measured. Flat lines are the goal:
time and memory per id must not grow with their number, and loading them again takes seconds.
"""

from __future__ import annotations

import asyncio
import tempfile
import time

from benchmarks import chart
from benchmarks.side_by_side import RESULTS
from semel.broker.server import Broker
from semel.core.transactions.commands import AbortTimedOut, AddPartitions, EndTxn, InitProducerId
from semel.core.transactions.states import TxnState

NUMBERS = (100, 1_000, 10_000, 100_000)
OPEN_ONE_IN = 10
SAMPLES = 500
TIME, MEMORY = "time per transaction, µs", "memory per id, bytes"
PARTITIONS = frozenset({("t", 0)})


def run() -> None:
    with tempfile.TemporaryDirectory() as data:
        costs = asyncio.run(_grow(data))
        asyncio.run(_load(data))
    for unit, points in costs.items():
        chart.save(
            RESULTS.with_name(f"crowd-{unit.split()[0]}.svg"),
            "Many transactional ids, one in ten with an open transaction",
            "ids known",
            unit,
            {"Semel": points},
        )


async def _grow(data: str) -> dict[str, list[tuple[float, float]]]:
    costs: dict[str, list[tuple[float, float]]] = {TIME: [], MEMORY: []}
    print("     ids    open  transaction    memory    sweep for timeouts")
    async with Broker(data) as broker:
        broker.catalog.create_topic("t", 1)
        before_mb, known = _memory_mb(), 0
        for number in NUMBERS:
            for index in range(known, number):
                broker.transactions.submit(InitProducerId(_name(index), 60_000))
                if index % OPEN_ONE_IN == 1:
                    _begin(broker, _name(index))
                if index % 500 == 0:
                    await asyncio.sleep(0)
            known = number
            cost_us = _transaction_us(broker, _name(number - OPEN_ONE_IN))
            began = time.perf_counter()
            broker.transactions.submit_to_all(AbortTimedOut())
            sweep_ms = (time.perf_counter() - began) * 1000
            opened = sum(txn.state is TxnState.ONGOING for txn in broker.transactions.known())
            memory_mb = _memory_mb() - before_mb
            costs[TIME].append((known, cost_us))
            costs[MEMORY].append((known, memory_mb * 1e6 / known))
            print(f"{known:8} {opened:7} {cost_us:9.0f} µs {memory_mb:6.0f} MB {sweep_ms:9.1f} ms")
    return costs


async def _load(data: str) -> None:
    began = time.perf_counter()
    async with Broker(data) as broker:
        while any(shard.machine is None for shard in broker.transactions.shards):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        known = sum(1 for _ in broker.transactions.known())
        print(f"loading {known} ids after a restart took {time.perf_counter() - began:.1f} s")


def _begin(broker: Broker, name: str) -> None:
    txn = broker.transactions.shard_of(name).machine.transactions[name]
    broker.transactions.submit(AddPartitions(name, txn.producer_id, txn.epoch, PARTITIONS))


def _transaction_us(broker: Broker, name: str) -> float:
    """Begin and commit, markers included; the tenth percentile, because machines are busy."""
    txn = broker.transactions.shard_of(name).machine.transactions[name]
    times = []
    for _ in range(SAMPLES):
        began = time.perf_counter()
        _begin(broker, name)
        broker.transactions.submit(EndTxn(name, txn.producer_id, txn.epoch, commit=True))
        times.append(time.perf_counter() - began)
    return sorted(times)[SAMPLES // 10] * 1e6


def _name(index: int) -> str:
    return f"id-{index}"


def _memory_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


if __name__ == "__main__":
    run()
