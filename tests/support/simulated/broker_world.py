"""A whole broker, its clients and its disk, driven by dice from one seed on a clock that jumps.

Where `world` drives the decisions alone, this one drives what carries them out: the shards that
park replies until a slow disk has them, reload after failed writes and resume after crashes; marker
delivery; the handlers' waits. What is asserted, during the run and after it has settled:

- an answer that was heard survives: commits, acknowledged records, offsets;
- a transaction is whole or not at all, and its offsets share its fate;
- a committed reader never sees anything go away, come twice, or change;
- nothing hangs: every prepared transaction completes, the last stable offset reaches the end,
  groups settle with every partition owned once.
"""

import asyncio
import random
import tempfile
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.simulated.actors import (
    TOPIC,
    Actor,
    CommitterActor,
    Lost,
    ProducerActor,
    committed_offset,
)
from tests.support.simulated.broker import Gone, SimulatedBroker
from tests.support.simulated.clock import run_jumping
from tests.support.simulated.members import ClassicMember, ConsumerMember
from tests.support.simulated.unreliable import Disk, UnreliableStore

from semel.store.interface import StorageError
from semel.wire.batches import headers, records_of
from semel.wire.messages.fetch import FetchRequest

IDS = ("a", "b")
STORM_SECONDS = 60
CALM_SECONDS = 90
"""Longer than a transaction may take, a session lasts and a broken disk waits, together."""
ANSWERED_WITHIN_SECONDS = 60
"""A JoinGroup waits longest: for its rebalance timeout, and a disk."""


class BrokerWorld:
    partitions = 3

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.disk = Disk(
            random.Random(f"{seed}/disk"),
            is_instant=self.dice.random() < 0.4,
            failures=self.dice.choice((0.0, 0.002, 0.01)),
        )
        self.is_calm = False
        self.store = UnreliableStore(self.disk)
        self.broker: SimulatedBroker
        self.producers: list[ProducerActor] = []
        self.committers = [CommitterActor(self, f"committer-{number}") for number in range(2)]
        self.members = [
            kind(self, f"{kind.group}-{number}")
            for kind in (ClassicMember, ConsumerMember)
            for number in range(2)
        ]
        self.readers = [Reader(self, index) for index in range(self.partitions)]
        self.owners: dict[tuple[str, int, int], str] = {}
        self._offsets = count(1)
        self._names = count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []

    def play(self) -> None:
        with tempfile.TemporaryDirectory(prefix="semel-world-") as data:
            run_jumping(self._play(Path(data)))

    async def _play(self, data: Path) -> None:
        await self._start_broker(data)
        self.broker.catalog.create_topic(TOPIC, self.partitions)
        for transactional_id in IDS:
            self._newcomer(transactional_id)
        for actor in (*self.committers, *self.members, *self.readers):
            self._spawn(actor.run())
        await self._storm(data)
        await self._calm_down()
        await self._check()
        self.broker.crash()

    # What actors use

    async def ask(self, request: Any, version: int, dice: random.Random) -> Any:
        """A request over a line that may lose it, or its answer."""
        await asyncio.sleep(dice.choice((0.0, 0.001, 0.001, 0.05)))
        if not self.is_calm and dice.random() < 0.02:
            await asyncio.sleep(1)
            raise Lost
        broker = self.broker
        asked = request() if callable(request) else request
        answering = asyncio.ensure_future(broker.ask(asked, version))
        done, _ = await asyncio.wait((answering,), timeout=ANSWERED_WITHIN_SECONDS)
        assert done, f"never answered: {asked}"
        try:
            answer = answering.result()
        except Gone:
            await asyncio.sleep(0.1)
            raise Lost from None
        if not self.is_calm and dice.random() < 0.02:
            await asyncio.sleep(1)
            raise Lost
        return answer

    def next_offset(self) -> int:
        return next(self._offsets)

    def fenced(self, producer: ProducerActor) -> None:
        """Somebody has to go on with the transactional id."""
        if not self.is_calm:
            self._newcomer(producer.transactional_id)

    def note_owner(self, member: Any, epoch: int) -> None:
        """A partition has one owner per epoch."""
        for partition in member.owned:
            key = (member.group, epoch, partition)
            owner = self.owners.setdefault(key, member.member_id)
            assert owner == member.member_id, f"{key} is {owner}'s and {member.member_id}'s"

    # Weather

    async def _storm(self, data: Path) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + STORM_SECONDS
        while loop.time() < end:
            await asyncio.sleep(self.dice.expovariate(1 / 4))
            self._look_for_failures()
            event = self.dice.random()
            if event < 0.35:
                self.store = self.broker.crash()
                await asyncio.sleep(self.dice.choice((0.0, 0.5)))
                await self._start_broker(data)
            elif event < 0.6:
                self._newcomer(self.dice.choice(IDS))
            elif event < 0.9:
                self._break_a_log()

    def _break_a_log(self) -> None:
        """A partition's disk fails all by itself, with whatever is on its way to it."""
        name = self.dice.choice(self.store.list())
        log: Any = self.store._logs[name]
        if log.offline is None:
            log.fail(StorageError("a simulated disk failed"))

    async def _calm_down(self) -> None:
        self.is_calm = True
        self.disk.failures = 0.0
        await asyncio.sleep(1)
        for task in list(self._tasks):
            if task.get_name() == "producer":
                task.cancel()
        await asyncio.sleep(CALM_SECONDS)
        self._look_for_failures()

    # Tasks

    async def _start_broker(self, data: Path) -> None:
        self.broker = SimulatedBroker(data, self.store)
        await self.broker.start()

    def _newcomer(self, transactional_id: str) -> None:
        producer = ProducerActor(self, f"{transactional_id}{next(self._names)}", transactional_id)
        self.producers.append(producer)
        self._spawn(producer.run(), "producer")

    def _spawn(self, coroutine: Any, name: str = "other") -> None:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._failures.append(problem)

    def _look_for_failures(self) -> None:
        for problem in self._failures:
            raise problem

    # What must hold in the end

    async def _check(self) -> None:
        prepared = [txn for txn in self.broker.transactions.known() if txn.prepared]
        assert not prepared, f"never completed: {prepared}"
        for partition in self.broker.partitions.of(TOPIC):
            assert partition.last_stable_offset == partition.log.next_offset, "a transaction hangs"
        for reader in self.readers:
            await reader.check()
        seen = Counter(tag for reader in self.readers for tag in reader.seen)
        assert all(times == 1 for times in seen.values()), "a record is there twice"
        for producer in self.producers:
            for attempt in producer.attempts:
                self._check_attempt(attempt, seen)
        for transactional_id in IDS:
            await self._check_offsets(transactional_id, seen)
        self._check_groups()
        self._look_for_failures()

    def _check_attempt(self, attempt: Any, seen: Counter[str]) -> None:
        visible = {tag for tag in seen if tag.startswith(f"{attempt.name}/")}
        acknowledged = set(attempt.acknowledged)
        if attempt.outcome is True:
            assert acknowledged <= visible, f"{attempt.name}: committed records are missing"
        elif attempt.outcome is False or not attempt.asked_to_commit:
            assert not visible, f"{attempt.name}: not committed, but visible"
        else:
            assert not visible or acknowledged <= visible, f"{attempt.name}: torn"

    async def _check_offsets(self, transactional_id: str, seen: Counter[str]) -> None:
        """The group's offset is that of the last transaction whose records are visible."""
        offsets = [
            attempt.offset
            for producer in self.producers
            if producer.transactional_id == transactional_id
            for attempt in producer.attempts
            if attempt.offset is not None and any(tag in seen for tag in attempt.acknowledged)
        ]
        expected = max(offsets, default=-1)
        looker = Actor(self, "looker")
        found = await committed_offset(looker, f"group-of-{transactional_id}")
        assert found == expected, f"{transactional_id}: offset {found}, records say {expected}"

    def _check_groups(self) -> None:
        for kind in (ClassicMember, ConsumerMember):
            owned = [p for m in self.members if isinstance(m, kind) for p in sorted(m.owned)]
            assert sorted(owned) == list(range(self.partitions)), f"{kind.group}: {owned}"


class Reader(Actor):
    """Reads one partition's committed records for ever; what it has seen stays as it is."""

    def __init__(self, world: BrokerWorld, index: int) -> None:
        super().__init__(world, f"reader-{index}")
        self.index = index
        self.position = 0
        self.seen: list[str] = []

    async def run(self) -> None:
        while True:
            with suppress(Lost):
                self.position, more = await self._read(self.position)
                self.seen += more
            await asyncio.sleep(0.3)

    async def check(self) -> None:
        """Read it all again, from the beginning."""
        end, everything = 0, list[str]()
        while end < self.position:
            with suppress(Lost):
                end, more = await self._read(end)
                everything += more
        assert everything == self.seen, "what was read has changed"

    async def _read(self, offset: int) -> tuple[int, list[str]]:
        """Aborted ranges begin with their first offset and end with their marker."""
        asked = FetchRequest.FetchPartition(
            partition=self.index, fetch_offset=offset, partition_max_bytes=1 << 24
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 24,
            isolation_level=1,
            topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[asked])],
        )
        answer = (await self.ask(request, 12)).responses[0].partitions[0]
        if answer.error_code:
            raise Lost
        begins: dict[int, list[int]] = {}
        for entry in answer.aborted_transactions or ():
            begins.setdefault(max(entry.first_offset, offset), []).append(entry.producer_id)
        aborting: set[int] = set()
        tags = []
        for batch in headers(bytearray(bytes(answer.records or b""))):
            aborting.update(begins.get(batch.base_offset, ()))
            offset = batch.next_offset
            if batch.is_control:
                aborting.discard(batch.producer_id)
            elif batch.producer_id not in aborting:
                tags += [(record.value or b"").decode() for record in records_of(batch)]
        return offset, tags
