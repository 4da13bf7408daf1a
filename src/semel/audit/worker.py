"""A process of the workload, made to be killed: `main` is all that it runs.

Its job comes as one line of JSON on standard input. What it does it says on standard output, one
line of JSON for each step and *before* the step where that matters: what was said before a kill is
known, and what was asked without an answer stays unknown. It ends when its input ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from dataclasses import asdict, dataclass
from typing import Any

from semel.audit.history import Leg
from semel.client import Producer, transact
from semel.client.cluster import Cluster
from semel.client.machines.types import TopicPartition
from semel.errors import AbortableError, FatalError, SemelError


@dataclass(frozen=True)
class Job:
    """What a worker is to do."""

    kind: str  # transfers or chain
    settings: dict[str, Any]
    writer: str  # the transactional id
    life: int
    seed: int
    targets: list[tuple[str, int]]  # partitions for transfers; the output's for a chain
    inputs: str = ""  # the topic that a chain reads
    group: str = ""
    transactions_per_second: float = 50
    aborts: float = 0.2  # share of transactions that are aborted on purpose
    cuts_per_minute: float = 6  # connections that are broken on purpose

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def say(**what: Any) -> None:
    """One line, written at once and whole: a kill cannot tear it."""
    os.write(1, json.dumps(what).encode() + b"\n")


class Cutter:
    """Breaks a client's connections now and then: requests in flight stay without an answer."""

    def __init__(self, dice: random.Random, per_minute: float) -> None:
        self._dice = dice
        self._rate = per_minute / 60

    async def run(self, *clusters: Cluster) -> None:
        while self._rate:
            await asyncio.sleep(self._dice.expovariate(self._rate))
            for cluster in clusters:
                cluster.cut_connections()
            say(step="cut")


async def transfers(job: Job) -> None:
    dice = random.Random(job.seed)
    async with Producer(settings=job.settings, transactional_id=job.writer) as producer:
        await producer.init_transactions()
        say(step="ready")
        cutter = asyncio.create_task(Cutter(dice, job.cuts_per_minute).run(producer._cluster))
        try:
            number = 0
            while True:
                await _transfer(producer, job, number, dice)
                number += 1
                await asyncio.sleep(dice.expovariate(job.transactions_per_second))
        finally:
            cutter.cancel()


async def _transfer(producer: Producer, job: Job, number: int, dice: random.Random) -> None:
    targets = dice.sample(job.targets, k=min(len(job.targets), dice.randint(2, 5)))
    places = [str(TopicPartition(*target)) for target in targets]
    say(step="begin", number=number, places=places)
    await producer.begin_transaction()
    asked = False
    try:
        for index, (topic, partition) in enumerate(targets):
            leg = Leg(job.writer, job.life, number, index, len(targets))
            await producer.send(topic, leg.to_bytes(dice.randint(0, 300)), partition=partition)
        if dice.random() < job.aborts:
            await producer.flush()
            await producer.abort_transaction()
            say(step="aborted", number=number)
            return
        asked = True
        say(step="ask", number=number)
        await producer.commit_transaction()
        say(step="committed", number=number)
    except FatalError:
        raise
    except AbortableError:
        await producer.abort_transaction()
        say(step="aborted", number=number)
    except SemelError as problem:
        # The time was over, the outcome is not known. Only a new life of this id can go on.
        say(step="unknown", number=number, asked=asked, why=str(problem))
        raise


async def chain(job: Job) -> None:
    dice = random.Random(job.seed)
    working = transact(
        job.settings,
        inputs=job.inputs,
        group_id=job.group,
        transactional_id=job.writer,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
        max_poll_records=50,
    )
    async with working as batches:
        say(step="ready")
        clusters = (working.producer._cluster, working.consumer._cluster)
        cutter = asyncio.create_task(Cutter(dice, job.cuts_per_minute).run(*clusters))
        try:
            async for batch in batches:
                for record in batch:
                    topic, partition = job.targets[record.offset % len(job.targets)]
                    place = TopicPartition(record.topic, record.partition)
                    value = json.dumps([str(place), record.offset]).encode()
                    await batch.producer.send(topic, value, partition=partition)
                say(step="copied", records=len(batch))
        finally:
            cutter.cancel()


async def work(job: Job) -> None:
    """Until the input ends, or the cluster refuses."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def read_input() -> None:
        if not os.read(0, 1 << 12):
            loop.remove_reader(0)
            ended.set()

    loop.add_reader(0, read_input)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    kinds = {"transfers": transfers, "chain": chain}
    working = asyncio.create_task(kinds[job.kind](job))
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    working.cancel()
    waiting.cancel()
    [result, _] = await asyncio.gather(working, waiting, return_exceptions=True)
    if isinstance(result, Exception):
        say(step="ended", why=f"{type(result).__name__}: {result}")


def main() -> None:
    line = b""
    while not line.endswith(b"\n"):  # not sys.stdin: it would read ahead
        piece = os.read(0, 1)
        if not piece:
            return
        line += piece
    given = json.loads(line)
    given["targets"] = [(topic, partition) for topic, partition in given["targets"]]
    asyncio.run(work(Job(**given)))
