"""A whole broker, its clients and its disk, driven by dice from one seed on a clock that jumps.

Where `world` drives the decisions alone, this one drives what carries them out: the shards that
park replies until a slow disk has them, reload after failed writes and resume after crashes; marker
delivery; the handlers' waits; and all that works in the background. Beside a topic that stays there
are others that are deleted and made again, grow and are configured, and groups that are deleted,
between any two turns of the loop (`meddler`). One world in two keeps its logs in real files.

What is asserted, during the run and after it has settled:

- an answer that was heard survives: commits, acknowledged records, offsets; of a topic as long as
  its id is there, and for no later topic of its name;
- a transaction is whole or not at all, and its offsets share its fate;
- a committed reader never sees anything go away, come twice, or change;
- there is a log for each partition of the catalog's topics and no other, and no stray directory;
  none is deleted whose topic the catalog knows;
- nothing that works in the background fails;
- nothing hangs: every prepared transaction completes, the last stable offset reaches the end,
  groups settle with every partition owned once.

Internal topics are not deleted here: whoever does that asks for open transactions to be forgotten.
"""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.support.simulated.actors import (
    OTHERS,
    TOPIC,
    Acknowledged,
    Actor,
    Attempt,
    CommitterActor,
    Lost,
    ProducerActor,
    committed_offset,
)
from tests.support.simulated.broker import FIRST_MS, Gone, SimulatedBroker
from tests.support.simulated.churn import Auditor, Tourist, Writer, Written
from tests.support.simulated.clock import JumpingLoop, run_jumping
from tests.support.simulated.files import AnyStore, UnreliableDiskStore
from tests.support.simulated.meddler import CHURNED, COMPACTED, CONFIGS, Meddler
from tests.support.simulated.members import ClassicMember, ConsumerMember
from tests.support.simulated.readers import Reader
from tests.support.simulated.unreliable import Disk, UnreliableStore

from semel.broker.partitions.partition import Partition

IDS = ("a", "b")
STORM_SECONDS = 60
CALM_SECONDS = 90
"""Longer than a transaction may take, a session lasts and a broken disk waits, together."""
ANSWERED_WITHIN_SECONDS = 60
"""A JoinGroup waits longest: for its rebalance timeout, and a disk."""
TURN_SECONDS = 0.0005
MEMORY = Path("/dev/shm")
"""Real files, but no real disk, where there is such a thing."""


class BrokerWorld:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.disk = Disk(
            random.Random(f"{seed}/disk"),
            is_instant=self.dice.random() < 0.4,
            failures=self.dice.choice((0.0, 0.002, 0.01)),
        )
        self.is_on_files = self.dice.random() < 0.5
        self.is_calm = False
        self.store: AnyStore
        self.broker: SimulatedBroker
        self.meddler = Meddler(self)
        self.producers: list[ProducerActor] = []
        self.committers = [CommitterActor(self, f"committer-{number}") for number in range(2)]
        self.members = [
            kind(self, f"{kind.group}-{number}")
            for kind in (ClassicMember, ConsumerMember)
            for number in range(2)
        ]
        self.writers = [Writer(self, f"writer-{number}") for number in range(3)]
        self.auditor = Auditor(self, "auditor")
        self.tourists = [Tourist(self, f"tourist-{number}") for number in range(2)]
        self.readers: dict[tuple[UUID, int], Reader] = {}
        self.owners: dict[tuple[str, int, Any], str] = {}
        self.failures: list[BaseException] = []
        self._offsets = count(1)
        self._names = count()
        self._tasks: set[asyncio.Task[None]] = set()

    def play(self) -> None:
        directory = MEMORY if MEMORY.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="semel-world-", dir=directory) as data:
            run_jumping(self._play(Path(data)))

    async def _play(self, data: Path) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, JumpingLoop)
        loop.turn_seconds = TURN_SECONDS
        loop.thread_seconds = self.disk.sync_seconds
        self.store = self._new_store(data, loop)
        await self._start_broker(data)
        self.broker.catalog.create_topic(TOPIC, 3, CONFIGS)
        for name in CHURNED:
            self.meddler.create(name)
        for transactional_id in IDS:
            self._newcomer(transactional_id)
        actors = (*self.committers, *self.members, *self.writers, self.auditor, *self.tourists)
        for actor in actors:
            self.spawn(actor.run())
        loop.between_turns = self.meddler.between_turns
        await self._storm(data)
        await self._calm_down()
        await self._check()
        self.broker.crash()

    def _new_store(self, data: Path, loop: JumpingLoop) -> AnyStore:
        if not self.is_on_files:
            return UnreliableStore(self.disk)
        return UnreliableDiskStore(str(data), self.disk, lambda: FIRST_MS + int(loop.time() * 1000))

    # What actors use

    @property
    def partitions(self) -> int:
        """How many the topic that stays has by now."""
        return self.broker.catalog.topics[TOPIC].partition_count

    def topic_id(self, name: str) -> UUID | None:
        topic = self.broker.catalog.topics.get(name)
        return None if topic is None else topic.id

    def partition(self, topic_id: UUID, index: int) -> Partition | None:
        name = self.broker.partitions.name_of(topic_id)
        return None if name is None else self.broker.partitions.find(name, index)

    def written(self) -> Iterator[Written]:
        """What was acknowledged outside of transactions, of the topics that are there."""
        present = self.broker.catalog.topics_by_id
        for writer in self.writers:
            yield from (one for one in writer.written if one.topic_id in present)

    def is_deleted(self, topic_id: UUID, index: int, offset: int) -> bool:
        """By DeleteRecords."""
        return offset < self.meddler.deleted_below.get((topic_id, index), 0)

    def topics_changed(self) -> None:
        """Somebody reads whatever there is. What compaction leaves is looked at by the auditor."""
        for topic in self.broker.catalog.topics.values():
            if topic.is_internal or topic.name == COMPACTED:
                continue
            for index in range(topic.partition_count):
                if (topic.id, index) not in self.readers:
                    reader = self.readers[topic.id, index] = Reader(self, topic.id, index)
                    self.spawn(reader.run())

    def check_store(self) -> None:
        """Between any two turns: a log for nothing but the catalog's topics."""
        for name, index in self.store.list():
            topic = self.broker.catalog.topics.get(name)
            assert topic is not None, f"there is a log {name}-{index}, and no such topic"
            assert index < topic.partition_count, f"{name}-{index} is too many"
            assert self.store.topic_id(name, index) == topic.id, f"{name}-{index} is another's"

    async def ask(
        self, request: Any, version: int, dice: random.Random, at_once: bool = False
    ) -> Any:
        """A request over a line that may lose it, or its answer."""
        await asyncio.sleep(0.0 if at_once else dice.choice((0.0, 0.001, 0.001, 0.05)))
        if not self.is_calm and dice.random() < 0.02:
            await asyncio.sleep(1)
            raise Lost
        broker = self.broker
        answering = asyncio.ensure_future(broker.ask(request, version))
        done, _ = await asyncio.wait((answering,), timeout=ANSWERED_WITHIN_SECONDS)
        assert done, f"never answered: {request}"
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
                self.break_a_log(self.dice)

    def break_a_log(self, dice: random.Random) -> None:
        names = self.store.list()
        if names:
            self.store.break_log(dice.choice(names))

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
        self.broker = SimulatedBroker(data, self.store, self.dice)
        await self.broker.start()
        self.broker.catalog.listeners.append(self.meddler)
        self.topics_changed()

    def _newcomer(self, transactional_id: str) -> None:
        producer = ProducerActor(self, f"{transactional_id}{next(self._names)}", transactional_id)
        self.producers.append(producer)
        self.spawn(producer.run(), "producer")

    def spawn(self, coroutine: Any, name: str = "other") -> None:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.failures.append(problem)

    def _look_for_failures(self) -> None:
        for problem in (*self.failures, *self.broker.failures):
            raise problem

    # What must hold in the end

    async def _check(self) -> None:
        prepared = [txn for txn in self.broker.transactions.known() if txn.prepared]
        assert not prepared, f"never completed: {prepared}"
        for partition in self.broker.partitions:
            if not partition.topic.is_internal:
                stable = partition.last_stable_offset
                assert stable == partition.log.next_offset, f"a transaction hangs in {partition}"
        await self._check_logs()
        seen = await self._check_readers()
        await self.auditor.check()
        for producer in self.producers:
            for attempt in producer.attempts:
                self._check_attempt(attempt, seen)
        for transactional_id in IDS:
            await self._check_offsets(transactional_id, seen)
        self._check_groups()
        self._look_for_failures()

    async def _check_logs(self) -> None:
        while self.broker.is_in_the_middle:  # noqa: ASYNC110  (a compaction tells nobody)
            await asyncio.sleep(0.001)
        self.check_store()
        topics = self.broker.catalog.topics.values()
        wanted = {(topic.name, index) for topic in topics for index in range(topic.partition_count)}
        assert set(self.store.list()) == wanted, "a partition has no log"
        strays = self.store.strays()
        assert not strays, f"left behind: {strays}"

    async def _check_readers(self) -> Counter[str]:
        """How often each committed record of the present topics was seen."""
        seen: Counter[str] = Counter()
        for reader in self.readers.values():
            if reader.topic_id in self.broker.catalog.topics_by_id:
                await reader.check()
                seen.update(found.tag for found in reader.seen)
        assert all(times == 1 for times in seen.values()), "a record is there twice"
        return seen

    def _is_there(self, one: Acknowledged) -> bool:
        """Whether its topic, and its place in it, are those of then."""
        return one.topic_id in self.broker.catalog.topics_by_id and not self.is_deleted(
            one.topic_id, one.partition, one.offset
        )

    def _check_attempt(self, attempt: Attempt, seen: Counter[str]) -> None:
        visible = {tag for tag in seen if tag.startswith(f"{attempt.name}/")}
        acknowledged = {one.tag for one in attempt.acknowledged if self._is_there(one)}
        if attempt.outcome is True:
            assert acknowledged <= visible, f"{attempt.name}: committed records are missing"
        elif attempt.outcome is False or not attempt.asked_to_commit:
            assert not visible, f"{attempt.name}: not committed, but visible"
        else:
            assert not visible or acknowledged <= visible, f"{attempt.name}: torn"

    async def _check_offsets(self, transactional_id: str, seen: Counter[str]) -> None:
        """The group's offset is that of the last transaction that was committed."""
        attempts = [
            attempt
            for producer in self.producers
            if producer.transactional_id == transactional_id
            for attempt in producer.attempts
            if attempt.asked_to_commit and attempt.outcome is not False
        ]
        committed, doubtful = {-1}, set()
        for attempt in attempts:
            if attempt.offset is None:
                continue
            there = [one for one in attempt.acknowledged if self._is_there(one)]
            if attempt.outcome is True or any(one.tag in seen for one in attempt.acknowledged):
                committed.add(attempt.offset)
            elif not there:  # nothing is left that would tell
                doubtful.add(attempt.offset)
        expected = {max(committed)} | {offset for offset in doubtful if offset > max(committed)}
        looker = Actor(self, "looker")
        group = f"group-of-{transactional_id}"
        found = await committed_offset(looker, group)
        assert found in expected, f"{transactional_id}: offset {found}, records say {expected}"
        await self._check_other_offset(looker, group, attempts)

    async def _check_other_offset(self, looker: Actor, group: str, attempts: list[Attempt]) -> None:
        """An offset of a topic that is gone does not count for the present one of its name."""
        present = self.topic_id(OTHERS[0])
        if present is None:
            return
        found = await committed_offset(looker, group, OTHERS[0])
        allowed = {-1} | {
            attempt.other_offset[1]
            for attempt in attempts
            if attempt.other_offset is not None and attempt.other_offset[0] in (None, present)
        }
        assert found in allowed, f"{group}: {found} is committed for {OTHERS[0]}, not of {allowed}"

    def _check_groups(self) -> None:
        topics = self.broker.catalog.topics
        subscribed = [topics[name] for name in (TOPIC, OTHERS[0]) if name in topics]
        wanted: dict[Any, list[Any]] = {
            ClassicMember: list(range(self.partitions)),
            ConsumerMember: sorted(
                (topic.id, index) for topic in subscribed for index in range(topic.partition_count)
            ),
        }
        for kind, partitions in wanted.items():
            owned = [p for m in self.members if isinstance(m, kind) for p in sorted(m.owned)]
            assert sorted(owned) == partitions, f"{kind.group}: {owned}, not {partitions}"
