"""Runs transactions on any Kafka, kills and pauses those who run them, and judges what is left.

Writers spread the records of each transaction over partitions of two topics. A group copies one of
the topics into a third, in transactions. Zombies of each kind try to get in. Readers watch. At the
end all transactions are ended, everything is read again, and `checks` judges the history.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from semel.audit import zombies
from semel.audit.checks import judge
from semel.audit.findings import Anomaly, AuditReport, Bar, Findings, Moment
from semel.audit.history import Copied, History, Leg, Outcome, Read, Transfer
from semel.audit.processes import WorkerProcess
from semel.audit.reading import LogReader
from semel.audit.topics import spans_of
from semel.audit.worker import Job
from semel.client import Admin, Consumer, NewTopic
from semel.client.machines.types import TopicPartition
from semel.errors import SemelError, UsageError
from semel.wire.batches import records_of

_CATCH_UP_S = 120
_MOST_MOMENTS = 2_000


@dataclass(frozen=True)
class WorkloadPlan:
    """How hard the cluster is tried."""

    seconds: float = 60
    seed: int = 0
    writers: int = 3
    members: int = 2
    partitions: int = 3
    kills_per_minute: float = 12
    pauses_per_minute: float = 3
    cuts_per_minute: float = 6
    transactions_per_second: float = 20  # of each writer
    zombies: bool = True
    keep_topics: bool = False

    def __post_init__(self) -> None:
        for name in ("seconds", "writers", "members", "partitions", "transactions_per_second"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} must be more than 0")
        for name in ("kills_per_minute", "pauses_per_minute", "cuts_per_minute"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be less than 0")


@dataclass(slots=True)
class _Seen:
    """What live readers got of a partition: offsets and checksums, 12 bytes a record."""

    offsets: array[int] = field(default_factory=lambda: array("q"))
    sums: array[int] = field(default_factory=lambda: array("I"))


class WorkloadAudit:
    """One run. If `run` is cancelled, `report` tells what is known so far."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        plan: WorkloadPlan | None = None,
        *,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.settings = dict(settings)
        self.plan = plan or WorkloadPlan()
        self.history = History()
        self.findings = Findings()
        self.complete = False
        self.run_id = f"semel-audit-{int(time.time())}-{self.plan.seed}"
        self._dice = random.Random(self.plan.seed)
        self._progress = progress
        self._workers: dict[str, WorkerProcess] = {}
        self._paused: list[WorkerProcess] = []
        self._seen: dict[str, _Seen] = {}
        self._moments: list[Moment] = []
        self._counts = {"kills": 0, "pauses": 0, "cut connections": 0, "copied records": 0}
        self._ended_early: dict[str, int] = {}
        self._bars: list[Bar] = []
        self._began = time.monotonic()
        self._about: dict[str, Any] = {}
        self._stage: zombies.Stage | None = None

    @property
    def transfers(self) -> str:
        return f"{self.run_id}-transfers"

    @property
    def inputs(self) -> str:
        return f"{self.run_id}-inputs"

    @property
    def copies(self) -> str:
        return f"{self.run_id}-copies"

    @property
    def group(self) -> str:
        return f"{self.run_id}-group"

    # The run

    async def run(self) -> AuditReport:
        async with Admin(settings=self.settings) as admin:
            await self._create(admin)
            try:
                await self._load()
                self._tell("ending transactions")
                await self._end_transactions(admin)
                self._tell("waiting for the group to catch up")
                await self._catch_up(admin)
                self._tell("reading everything again")
                await self._read_again(admin)
                self.findings.merge(judge(self.history))
                self.complete = True
                return self.report()
            finally:
                await self._stop_workers()
                if not self.plan.keep_topics and (self.complete and not self.findings):
                    await self._remove(admin)

    async def _create(self, admin: Admin) -> None:
        about = await admin.describe_cluster()
        self._about = {"cluster": about.cluster_id, "brokers": len(about.brokers)}
        count = self.plan.partitions
        names = (self.transfers, self.inputs, self.copies)
        await admin.create_topics([NewTopic(name, partitions=count) for name in names])

    async def _remove(self, admin: Admin) -> None:
        await admin.delete_topics([self.transfers, self.inputs, self.copies], missing_ok=True)

    def _places(self, *topics: str) -> list[TopicPartition]:
        return [TopicPartition(t, i) for t in topics for i in range(self.plan.partitions)]

    async def _load(self) -> None:
        stopping = asyncio.Event()
        self._began = time.monotonic()
        for number in range(self.plan.writers):
            await self._start(self._job("transfers", f"{self.run_id}-writer-{number}", 0))
        for number in range(self.plan.members):
            await self._start(self._job("chain", f"{self.run_id}-member-{number}", 0))
        tasks = [
            asyncio.create_task(doing)
            for doing in (
                self._watch(stopping),
                self._harm(stopping),
                self._play_zombies(stopping),
                self._revive(stopping),
            )
        ]
        try:
            until = self._began + self.plan.seconds
            while time.monotonic() < until:
                done, _ = await asyncio.wait(tasks, timeout=1, return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    task.result()
                self._tell("running")
            stopping.set()
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._stop_workers()

    def _job(self, kind: str, writer: str, life: int) -> Job:
        chain = kind == "chain"
        places = self._places(*((self.copies,) if chain else (self.transfers, self.inputs)))
        return Job(
            kind=kind,
            settings=self.settings,
            writer=writer,
            life=life,
            seed=self._dice.getrandbits(32),
            targets=[(place.topic, place.partition) for place in places],
            inputs=self.inputs,
            group=self.group,
            transactions_per_second=self.plan.transactions_per_second,
            cuts_per_minute=self.plan.cuts_per_minute,
        )

    async def _start(self, job: Job) -> WorkerProcess:
        worker = WorkerProcess(job, self._heard)
        self._workers[job.writer] = worker
        await worker.start()
        return worker

    async def _stop_workers(self) -> None:
        every = [*self._workers.values(), *self._paused]
        await asyncio.gather(*(worker.stop() for worker in every))
        self._paused.clear()

    # What the workers say

    def _heard(self, job: Job, said: dict[str, Any]) -> None:
        step = said["step"]
        if step == "cut":
            self._counts["cut connections"] += 1
        elif step == "copied":
            self._counts["copied records"] += said["records"]
        elif step == "ended":
            why = said["why"].partition(":")[0]
            self._ended_early[why] = self._ended_early.get(why, 0) + 1
        elif "number" in said:
            self._heard_of_transfer((job.writer, job.life, said["number"]), step, said)

    def _heard_of_transfer(
        self, key: tuple[str, int, int], step: str, said: dict[str, Any]
    ) -> None:
        transfers = self.history.transfers
        if step == "begin":
            transfers[key] = Transfer(Outcome.ABORTED, tuple(said["places"]))
        elif step == "ask":
            transfers[key].outcome = Outcome.UNKNOWN
        elif step in ("committed", "aborted"):
            transfers[key].outcome = Outcome(step)
            self._moment(key[0], step)

    def _moment(self, writer: str, kind: str) -> None:
        if len(self._moments) < _MOST_MOMENTS or kind in ("killed", "paused", "resumed"):
            passed = time.monotonic() - self._began
            self._moments.append(Moment(passed, self._short(writer), kind))

    def _short(self, name: str) -> str:
        return name.removeprefix(f"{self.run_id}-")

    # What is done to them

    async def _harm(self, stopping: asyncio.Event) -> None:
        """Kills and pauses, at random moments."""
        rate = (self.plan.kills_per_minute + self.plan.pauses_per_minute) / 60
        pausing: set[asyncio.Task[None]] = set()
        while rate and not await _over(stopping, self._dice.expovariate(rate)):
            running = [worker for worker in self._workers.values() if worker.is_running]
            if not running:
                continue
            victim = self._dice.choice(running)
            share = self.plan.pauses_per_minute / 60 / rate
            if self._dice.random() < share:
                task = asyncio.create_task(self._pause(victim, stopping))
                pausing.add(task)
                task.add_done_callback(pausing.discard)
            else:
                await self._kill(victim)
        await asyncio.gather(*pausing)

    async def _kill(self, victim: WorkerProcess) -> None:
        self._counts["kills"] += 1
        self._moment(victim.job.writer, "killed")
        await victim.kill()
        await self._replace(victim)

    async def _pause(self, victim: WorkerProcess, stopping: asyncio.Event) -> None:
        """Stops a process, lets another take its transactional id over, and lets it go on: it does
        not know that it is a zombie."""
        self._counts["pauses"] += 1
        job = victim.job
        self._moment(job.writer, "paused")
        victim.pause()
        self._paused.append(victim)
        await self._replace(victim)
        await self._workers[job.writer].ready.wait()
        await _over(stopping, self._dice.uniform(0, 3))
        self._moment(job.writer, "resumed")
        victim.resume()
        await victim.stop()
        self._paused.remove(victim)

    async def _revive(self, stopping: asyncio.Event) -> None:
        """Workers that ended by themselves (a commit without an answer) get another life."""
        while not await _over(stopping, 0.5):
            for worker in list(self._workers.values()):
                if worker.has_ended:
                    await self._replace(worker)

    async def _replace(self, worker: WorkerProcess) -> None:
        """The next life of a worker, unless somebody began it meanwhile: a life has one process."""
        job = worker.job
        if self._workers[job.writer] is worker:
            await self._start(self._job(job.kind, job.writer, job.life + 1))

    async def _play_zombies(self, stopping: asyncio.Event) -> None:
        self._stage = zombies.Stage(
            self.settings,
            self.run_id,
            self._places(self.transfers),
            self.inputs,
            self.history,
            self.findings,
        )
        if self.plan.zombies:
            await zombies.play(self._stage, stopping)

    # Readers

    async def _watch(self, stopping: asyncio.Event) -> None:
        """Reads what is committed while it is written, and remembers what it was."""
        async with Consumer(
            settings=self.settings, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign(self._places(self.transfers, self.inputs, self.copies))
            while not stopping.is_set():
                for record in await consumer.poll(200):
                    name = f"{record.topic}-{record.partition}"
                    seen = self._seen.setdefault(name, _Seen())
                    seen.offsets.append(record.offset)
                    seen.sums.append(crc32(record.value or b""))

    # The end

    async def _end_transactions(self, admin: Admin) -> None:
        for writer in self._workers:
            try:
                await admin.fence_producer(writer)
            except SemelError as problem:
                self.findings.found(Anomaly.STALLED, writer, f"cannot be taken over: {problem}")

    async def _catch_up(self, admin: Admin) -> None:
        """A new member copies what is left, with nobody who kills it. Then no partition may have
        anything open."""
        job = self._job("chain", f"{self.run_id}-member-0", 1_000_000)
        worker = await self._start(job)
        try:
            ends = await self._input_ends(admin)
            if not await _until(lambda: self._is_copied(admin, ends), _CATCH_UP_S):
                said = f"the inputs are not all copied {_CATCH_UP_S} s after the last kill"
                self.findings.found(Anomaly.STALLED, self.group, said)
        finally:
            await worker.stop()
        await admin.fence_producer(job.writer)
        if not await _until(lambda: self._is_stable(admin), _CATCH_UP_S / 4):
            await self._name_holders(admin)

    async def _is_copied(self, admin: Admin, ends: dict[TopicPartition, int]) -> bool:
        offsets = await admin.group_offsets(self.group)
        return all(place in offsets and offsets[place].offset >= end for place, end in ends.items())

    async def _input_ends(self, admin: Admin) -> dict[TopicPartition, int]:
        """Behind the last committed input: markers and aborted records may follow, for which no
        group commits an offset."""
        ends: dict[TopicPartition, int] = {}
        async with LogReader(self.settings) as reader:
            for span in await spans_of(admin, [self.inputs]):
                async for batch in reader.committed(span.partition, span.start, span.last_stable):
                    ends[span.partition] = batch.next_offset
        return ends

    async def _is_stable(self, admin: Admin) -> bool:
        spans = await spans_of(admin, [self.transfers, self.inputs, self.copies])
        self._bars = [
            Bar(self._short(str(span.partition)), span.start, span.last_stable, span.end)
            for span in spans
        ]
        return all(span.last_stable == span.end for span in spans)

    async def _name_holders(self, admin: Admin) -> None:
        places = self._places(self.transfers, self.inputs, self.copies)
        for producer in await admin.describe_producers(places):
            if producer.transaction_start_offset is not None:
                where = f"{producer.partition} offset {producer.transaction_start_offset}"
                said = f"producer {producer.producer_id}, epoch {producer.producer_epoch}"
                self.findings.found(Anomaly.HANGING, where, said)

    async def _read_again(self, admin: Admin) -> None:
        spans = await spans_of(admin, [self.transfers, self.inputs, self.copies])
        async with LogReader(self.settings) as reader:
            for span in spans:
                values: dict[int, int] = {}
                async for batch in reader.committed(span.partition, span.start, span.last_stable):
                    for record in records_of(batch):
                        values[record.offset] = crc32(record.value or b"")
                        self._note(span.partition, record.offset, record.value or b"")
                self._compare(str(span.partition), values)
        offsets = await admin.group_offsets(self.group)
        self.history.chain.committed = {
            str(place): committed.offset for place, committed in offsets.items()
        }

    def _note(self, place: TopicPartition, offset: int, value: bytes) -> None:
        if place.topic == self.copies:
            source, at = json.loads(value)
            copy = Copied(source, at, f"{place} offset {offset}")
            self.history.chain.copies.append(copy)
            return
        self.history.reads.append(Read(str(place), offset, Leg.of(value)))
        if place.topic == self.inputs:
            self.history.chain.inputs.setdefault(str(place), set()).add(offset)

    def _compare(self, name: str, values: dict[int, int]) -> None:
        seen = self._seen.get(name, _Seen())
        for offset, checksum in zip(seen.offsets, seen.sums, strict=True):
            if offset not in values:
                self.history.vanished.append((name, offset))
            elif values[offset] != checksum:
                self.history.changed.append((name, offset))

    # Telling

    def _tell(self, doing: str) -> None:
        outcomes = self._outcomes()
        passed = time.monotonic() - self._began
        self._progress(
            f"{doing}, {passed:.0f} s: {outcomes['committed']} committed, "
            f"{outcomes['aborted']} aborted, {outcomes['unknown']} unknown; "
            f"{self._counts['kills']} kills, {self._counts['pauses']} pauses, "
            f"{self._counts['cut connections']} cut connections"
        )

    def _outcomes(self) -> dict[str, int]:
        counts = {outcome.value: 0 for outcome in Outcome}
        for transfer in self.history.transfers.values():
            counts[transfer.outcome.value] += 1
        return counts

    def report(self) -> AuditReport:
        outcomes = self._outcomes()
        facts: dict[str, Any] = {
            **self._about,
            "seed": self.plan.seed,
            "transactions committed": outcomes["committed"],
            "transactions aborted": outcomes["aborted"],
            "transactions of unknown outcome": outcomes["unknown"],
            **self._counts,
            "records read again": len(self.history.reads) + len(self.history.chain.copies),
            "records seen live": sum(len(seen.offsets) for seen in self._seen.values()),
            "seconds": round(time.monotonic() - self._began, 1),
        }
        if self._stage is not None:
            facts["zombies refused"] = self._stage.refused
            if self._stage.unanswered:
                facts["zombies without an answer"] = self._stage.unanswered
        if self._ended_early:
            facts["workers that ended by themselves"] = self._ended_early
        return AuditReport(
            "Audit by transactions under kills",
            self.findings,
            facts=facts,
            notes=self._notes(),
            bars=self._bars,
            moments=self._moments,
            complete=self.complete,
        )

    def _notes(self) -> list[str]:
        if self.complete and self.findings:
            return [f"The topics {self.run_id}-… were kept: they are the evidence."]
        return []


async def _over(stopping: asyncio.Event, seconds: float) -> bool:
    """Waits, but not longer than the run goes on."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return False
    return True


async def _until(holds: Callable[[], Any], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not await holds():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.25)
    return True
