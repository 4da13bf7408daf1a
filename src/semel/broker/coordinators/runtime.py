"""Runs a machine over one partition of an internal topic: decide, append, apply, and then answer.

    reply = shard.submit(command)        # the reply, or a future of it

A decision is made on the state already applied in memory, its records are appended and applied at
once, so the next decision sees them; but no reply and no effect leaves before everything it was
based on is durable. Errors wait, too: they may speak of a state that a crash would undo. If an
append fails, all that waits is answered NOT_COORDINATOR, and the machine is built anew from its
log: there is no undo. Under `os` durability an append is durable when it returns, nothing ever
waits, and `submit` is a plain function call.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from semel.broker.partitions.partition import Partition
from semel.broker.replies import NowOrLater
from semel.core.machine import Codec, Command, Decision, LogEntry, Machine
from semel.core.partition.admission import Refusal
from semel.core.partition.verification import Guard
from semel.store.interface import DURABLE, StorageError, Ticket
from semel.wire.batches import (
    NO_PRODUCER_ID,
    Attribute,
    BatchHeader,
    build_few,
    parse_marker,
    records_of,
)
from semel.wire.errors import ErrorCode

log = logging.getLogger("semel.runtime")

Waiting = tuple[Ticket, Command[Any], asyncio.Future[Any] | None, Decision]
"""What must be durable, who asked, the future of the reply if any, and what was decided."""
RECORD_FRAMING = 16  # a record's lengths and deltas, at most, among so few
LARGEST_BATCH = 512 * 1024
"""Half of the default max.message.bytes. A decision that writes more takes several batches."""


M = TypeVar("M", bound=Machine)
R = TypeVar("R")


class Shard(Generic[M]):
    """One machine with its log, while this broker leads the partition.

    `run` carries out one effect; `observe` is given every record as it is applied, but not those
    replayed from the log; `failed` is called once when the log can no longer be written.
    """

    def __init__(
        self,
        partition: Partition,
        new_machine: Callable[[], M],
        codec: Codec,
        *,
        now_ms: Callable[[], int],
        run: Callable[[Shard[M], Any], None],
        failed: Callable[[Shard[M]], None],
        observe: Callable[[Any], None] | None = None,
    ) -> None:
        self.partition = partition
        self.machine: M | None = None
        self.error = ErrorCode.NOT_COORDINATOR
        """What a command is answered while there is no machine."""
        self._new_machine = new_machine
        self._codec = codec
        self._now_ms = now_ms
        self._run_effect = run
        self._observe = observe
        self._failed = failed
        self._ticket = DURABLE
        self._waiting: deque[Waiting] = deque()
        self._put_off: dict[bytes | None, Any] = {}

    def __repr__(self) -> str:
        return f"Shard({self.partition!r}, epoch {self.epoch})"

    @property
    def epoch(self) -> int:
        """The coordinator epoch: that of the partition's leadership."""
        return self.partition.leader_epoch

    @property
    def is_durable(self) -> bool:
        """All that was decided so far is."""
        return self._ticket.durable

    # Commands

    def submit(self, command: Command[R], guard: Guard | None = None) -> NowOrLater[R]:
        """Decide, append and apply now; the reply, or a future of it where something it rests on is
        not durable yet. `guard` proves the verification of records inside a transaction."""
        machine = self.machine
        if machine is None:
            return command.refused(self.error)
        now_ms = self._now_ms()
        decision = machine.decide(command, now_ms)
        reply: R
        reply, records, effects = decision
        if records:
            refusal = self._append(self._encode(records), now_ms, guard)
            if refusal is not None:
                return command.refused(refusal.error)
            self._apply(machine, records)
        if not self._ticket.durable:
            return self._wait(command, decision)
        for effect in effects:
            self._run_effect(self, effect)
        return reply

    def submit_all(self, commands: Sequence[Command[R]]) -> list[NowOrLater[R]]:
        """Several commands, each decided on what those before it led to, their records appended at
        once; none is answered before that. Only for records outside transactions, which nothing
        but a broken log refuses: they are applied already."""
        machine = self.machine
        if machine is None:
            return [command.refused(self.error) for command in commands]
        now_ms = self._now_ms()
        decisions: list[Decision] = []
        entries: list[LogEntry] = []
        try:
            for command in commands:
                decision = machine.decide(command, now_ms)
                entries += self._encode(decision.records)
                self._apply(machine, decision.records)
                decisions.append(decision)
        finally:  # what was applied is written, whatever happens
            refusal = self._append(entries, now_ms)
        if refusal is not None:
            return [command.refused(refusal.error) for command in commands]
        if self._ticket.durable:
            for decision in decisions:
                if decision.effects:
                    self._run(decision)
            return [decision.reply for decision in decisions]
        return [self._wait(*both) for both in zip(commands, decisions, strict=True)]

    def submit_lazily(self, command: Command[object], key: bytes) -> None:
        """Decide and apply now, append with whatever comes next, at the latest at `flush`, or never
        if the next record of the same key says it all. Only for what a reloaded machine would find
        out again by itself; no reply, no effects, and no record but one of this key."""
        if self.machine is None:
            return
        _, records, effects = self.machine.decide(command, self._now_ms())
        assert not effects
        for record in records:
            self._put_off[key] = record
        self._apply(self.machine, records)

    def flush(self) -> None:
        """Append what was put off."""
        if self._put_off and self.machine is not None:
            self._append([], self._now_ms())

    def append_marker(
        self, producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, version: int
    ) -> Ticket | Refusal:
        """End a producer's transaction in this shard's own partition, and let the machine know."""
        self.flush()
        if self.machine is None:
            # The transaction's coordinator knows this one as "not ready yet, ask again".
            return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self!r} is not loaded.")
        appended = self.partition.append_marker(
            producer_id, epoch, commit, coordinator_epoch, version
        )
        if isinstance(appended, Refusal):
            return appended
        self._take(appended.ticket)
        record = self._codec.decode_marker(producer_id, epoch, commit)
        if record is not None:
            self._apply(self.machine, (record,))
        return appended.ticket

    # Coming and going

    def load(self) -> None:
        """Replay the whole log, and carry out the effects that a crash may have prevented."""
        for _ in self.load_steps():
            pass

    def load_steps(self) -> Iterator[None]:
        """The same, pausing after every batch so that a long log does not hold up the loop."""
        self.error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        machine = self._new_machine()
        log = self.partition.log
        for batch in log.batches(log.start_offset):
            for record in self._decode(BatchHeader(batch)):
                machine.apply(record)
            yield
            if log is not self.partition.log:
                raise StorageError(f"{self!r}: its log was opened again while it was read")
        self.machine = machine
        self.partition.on_reopened = self._reopened
        self._ticket = DURABLE
        self._run(Decision(effects=machine.resume()))

    def _reopened(self) -> None:
        """The log may hold less than the machine has seen: only a machine built from it counts."""
        self._give_up("its log was opened again")

    def unload(self) -> None:
        """Forget the machine. All that waits is answered NOT_COORDINATOR, and so is what comes."""
        self.machine, self.error = None, ErrorCode.NOT_COORDINATOR
        self._put_off.clear()
        waiting, self._waiting = self._waiting, deque()
        for _, command, future, _ in waiting:
            if future is not None and not future.done():
                future.set_result(command.refused(self.error))

    # The log

    def _append(
        self, entries: list[LogEntry], now_ms: int, guard: Guard | None = None
    ) -> Refusal | None:
        if self._put_off:
            entries = self._with_put_off(entries)
        if len(entries) == 1:  # as nearly always
            return self._append_run(entries, now_ms, guard)
        for run in _runs(entries):
            refusal = self._append_run(run, now_ms, guard)
            if refusal is not None:
                return refusal
        return None

    def _append_run(
        self, run: list[LogEntry], now_ms: int, guard: Guard | None = None
    ) -> Refusal | None:
        _, _, producer_id, epoch = run[0]
        if producer_id == NO_PRODUCER_ID:
            appended = self.partition.append_plain(run, now_ms)
        else:
            batch = _transactional_batch(run, now_ms, producer_id, epoch)
            appended = self.partition.append_internal(batch, guard)
        if isinstance(appended, Refusal):
            if appended.error is not ErrorCode.KAFKA_STORAGE_ERROR:
                return appended
            self._give_up(appended.message)
            return Refusal(self.error, appended.message)
        if appended.ticket is not self._ticket:  # under `os` there is but one
            self._take(appended.ticket)
        return None

    def _with_put_off(self, entries: list[LogEntry]) -> list[LogEntry]:
        """The log is compacted: what was put off and is said anew now need not be said before."""
        put_off, self._put_off = self._put_off, {}
        for key, _, producer_id, _ in entries:
            if producer_id == NO_PRODUCER_ID:
                put_off.pop(key, None)
        return self._encode(put_off.values()) + entries if put_off else entries

    def _take(self, ticket: Ticket) -> None:
        self._ticket = ticket
        if not ticket.durable:
            ticket.add_callback(self._settled)

    def _wait(self, command: Command[R], decision: Decision) -> NowOrLater[R]:
        reply: R = decision.reply
        future: asyncio.Future[R] | None = None
        if reply is not None:
            future = asyncio.get_running_loop().create_future()
        self._waiting.append((self._ticket, command, future, decision))
        return reply if future is None else future

    def _settled(self, ticket: Ticket) -> None:
        if ticket.error is not None:
            self._give_up(str(ticket.error))
            return
        while self._waiting and self._waiting[0][0].durable:
            _, _, future, decision = self._waiting.popleft()
            self._run(decision)
            if future is not None and not future.done():
                future.set_result(decision.reply)

    def _give_up(self, reason: str) -> None:
        if self.machine is None:
            return
        log.error("cannot write; loading it again", extra={"shard": self, "reason": reason})
        self.unload()
        self._failed(self)

    def _run(self, decision: Decision) -> None:
        for effect in decision.effects:
            self._run_effect(self, effect)

    def _apply(self, machine: Machine, records: Iterable[Any]) -> None:
        observe = self._observe
        for record in records:
            machine.apply(record)
            if observe is not None:
                observe(record)

    def _encode(self, records: Iterable[Any]) -> list[LogEntry]:
        encode = self._codec.encode
        entries = []
        for record in records:  # no comprehension: it is a function call, and this is mostly one
            entry = encode(record)
            if entry is not None:
                entries.append(entry)
        return entries

    def _decode(self, batch: BatchHeader) -> Iterator[Any]:
        if batch.is_control:
            marker = parse_marker(batch)
            if marker is not None:
                record = self._codec.decode_marker(
                    marker.producer_id, marker.producer_epoch, marker.is_commit
                )
                if record is not None:
                    yield record
            return
        producer = (NO_PRODUCER_ID, -1)
        if batch.is_transactional:
            producer = (batch.producer_id, batch.producer_epoch)
        for line in records_of(batch):
            record = self._codec.decode(LogEntry(line.key, line.value, *producer))
            if record is not None:
                yield record


def _runs(entries: list[LogEntry]) -> list[list[LogEntry]]:
    """A batch belongs to one producer's transaction, or to none: neighbours, not too many."""
    runs: list[list[LogEntry]] = []
    producer, size = None, 0
    for entry in entries:
        if entry[2:] != producer or size > LARGEST_BATCH:
            producer, size = entry[2:], 0
            runs.append([])
        runs[-1].append(entry)
        size += len(entry.key or b"") + len(entry.value or b"") + RECORD_FRAMING
    return runs


def _transactional_batch(
    run: list[LogEntry], now_ms: int, producer_id: int, epoch: int
) -> bytearray:
    return build_few(
        run,
        now_ms,
        attributes=Attribute.TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
