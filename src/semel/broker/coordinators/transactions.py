"""The transaction coordinators of this broker: one shard per partition of __transaction_state.

    reply = transactions.submit(EndTxn(...))      # a reply, or a future of it

The topic is made when the first transactional id shows up. A shard is loaded in the background
after a start, or on the spot when somebody asks for it first. On one node a transaction's markers
are written before its EndTxn is answered (see docs/decisions), so CONCURRENT_TRANSACTIONS hardly
ever comes up; where it does, the broker waits a little itself before it says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING, TypeVar

from semel.broker.catalog.internal_topics import TRANSACTION_STATE
from semel.broker.coordinators.errors import Errors, for_produce
from semel.broker.coordinators.marker_sender import MarkerSender, PendingCompleteTxn
from semel.broker.coordinators.runtime import Shard
from semel.broker.coordinators.shards import ShardLoader
from semel.broker.coordinators.timeline import Timeline
from semel.broker.coordinators.transaction_counts import TransactionCounts
from semel.broker.replies import NowOrLater, settled, when
from semel.core.machine import Command
from semel.core.placing import partition_of
from semel.core.transactions.commands import (
    AbortTimedOut,
    AddPartitions,
    ForgetIdle,
    Found,
    MarkersWritten,
    PartitionErrors,
    Reply,
    TransactionCommand,
    VerifyPartitions,
    WriteMarkers,
)
from semel.core.transactions.coordinator import Coordinator
from semel.core.transactions.partitions import includes
from semel.core.transactions.records import TransactionCodec, encode_key
from semel.core.transactions.rules import Rules
from semel.core.transactions.states import COMPLETE
from semel.core.transactions.transaction import TV_2, TopicPartition, Transaction
from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Topic
    from semel.broker.partitions.partition import Partition
    from semel.broker.server import Broker

log = logging.getLogger("semel.transactions")

#: How long a completed transaction's last record may wait for the next one of its id, which makes
#: it unnecessary. A crash before it is written only means that the markers are written once more.
FLUSH_SECONDS = 0.1

R = TypeVar("R", bound=Reply | PartitionErrors | Found)


TransactionShard = Shard[Coordinator]


class Transactions:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.timeline = Timeline()
        self.counts = TransactionCounts()
        self.markers = MarkerSender(broker)
        self.shards: list[TransactionShard] = []
        self._loader: ShardLoader[Coordinator] = ShardLoader(broker)
        self._unflushed: set[TransactionShard] = set()
        self._completions: dict[str, asyncio.Future[None]] = {}
        self._pending: dict[str, PendingCompleteTxn] = {}

    # Life

    def start(self) -> None:
        self.broker.catalog.listeners.append(self)
        if TRANSACTION_STATE in self.broker.catalog.topics:
            self._make_shards()
            self.broker.spawn(self._loader.load_all(self.shards))
        self.broker.spawn(self._sweep_timeouts())
        self.broker.spawn(self._sweep_idle())

    async def stop(self) -> None:
        self._loader.stop()
        self._flush()
        for shard in self.shards:
            shard.unload()
        await self.markers.close()

    # What handlers ask

    def submit(self, command: TransactionCommand[R]) -> NowOrLater[R]:
        """The coordinator's reply to a command that names a transactional id, or a future of it."""
        reply = self.shard_of(command.transactional_id).submit(command)
        if type(reply) is Reply:
            if reply.error is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return reply
        elif not isinstance(reply, asyncio.Future):
            return reply
        return self.broker.spawn(self._submit_patiently(command, reply))

    def submit_to_all(self, command: Command[R]) -> list[NowOrLater[R]]:
        """Every shard's reply to a command about all transactional ids."""
        return [self._loader.loaded(shard).submit(command) for shard in self.shards]

    def includes(
        self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition
    ) -> bool:
        """Whether a partition is in a producer's open transaction, as far as can be said at once.
        False may also mean that its coordinator has to be asked, by `verify`."""
        shards = self.shards
        if not shards:
            return False
        shard = shards[partition_of(transactional_id, len(shards))]
        machine = shard.machine
        if machine is None or not shard.is_durable:
            return False
        txn = machine.transactions.get(transactional_id)
        return includes(txn, producer_id, epoch, partition)

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        version: int,
        add: bool,
    ) -> NowOrLater[Errors]:
        """Whether partitions are in the open transaction; with `add` they are put there (KIP-890).

        The codes are those that clients of this `version` of Produce understand. What would only be
        checked is taken on trust where verification is switched off (as Kafka's ReplicaManager)."""
        if not add and not self.broker.settings["transaction.partition.verification.enable"]:
            return {}
        asked = self._ask(transactional_id, producer_id, producer_epoch, partitions, add)
        return when(asked, lambda errors: for_produce(errors, version))

    def _ask(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        add: bool,
    ) -> NowOrLater[Errors]:
        """The coordinator's own codes by partition."""
        wanted = frozenset(partitions)
        if add:
            command = AddPartitions(transactional_id, producer_id, epoch, wanted, TV_2)
            return when(self.submit(command), lambda reply: dict.fromkeys(wanted, reply.error))
        question = VerifyPartitions(transactional_id, producer_id, epoch, wanted)
        return when(self.shard_of(transactional_id).submit(question), _by_partition)

    def shard_of(self, transactional_id: str) -> TransactionShard:
        shards = self.shards or self._make_topic()
        shard = shards[partition_of(transactional_id, len(shards))]
        return shard if shard.machine is not None else self._loader.loaded(shard)

    def why(self, error: ErrorCode, producer_id: int, epoch: int) -> str:
        """Why a producer gets this error, if it was fenced by force; "" otherwise."""
        if error is ErrorCode.NONE:
            return ""
        return self.timeline.why(producer_id, epoch) or ""

    def involved(self, txn: Transaction) -> Set[TopicPartition]:
        """The partitions of a transaction; of one that is ending, those without their marker."""
        pending = self._pending.get(txn.transactional_id)
        if pending is None or pending.progress.order.prepared is not txn:
            return txn.partitions
        return pending.progress.partitions

    def known(self) -> Iterator[Transaction]:
        """Every transaction of every loaded shard."""
        for shard in self.shards:
            if shard.machine is not None:
                yield from shard.machine.transactions.values()

    # Patience

    async def _submit_patiently(self, command: TransactionCommand[R], reply: NowOrLater[R]) -> R:
        """Instead of sending the client away with 51, wait for the last transaction to complete."""
        loop = self.broker.loop
        patience_ms = self.broker.settings["add.partitions.to.txn.retry.backoff.max.ms"]
        deadline = loop.time() + patience_ms / 1000
        while True:
            answer = await settled(reply)
            left = deadline - loop.time()
            if answer.error is not ErrorCode.CONCURRENT_TRANSACTIONS or left <= 0:
                return answer
            if not await self._completed(command.transactional_id, left):
                return answer
            reply = self.shard_of(command.transactional_id).submit(command)

    async def _completed(self, transactional_id: str, seconds: float) -> bool:
        machine = self.shard_of(transactional_id).machine
        if machine is None:
            return False
        txn = machine.transactions.get(transactional_id)
        if txn is None or not txn.prepared:
            return True
        future = self._completions.get(transactional_id)
        if future is None:
            future = self._completions[transactional_id] = self.broker.loop.create_future()
        await asyncio.wait((future,), timeout=seconds)
        return future.done()

    # What the shards order and tell

    def _run(self, shard: TransactionShard, order: WriteMarkers) -> None:
        left = self.markers.write(order.prepared, shard.epoch)
        if not left:
            self._complete(shard, order.prepared)
            return
        machine = shard.machine
        pending = PendingCompleteTxn(
            order,
            shard.epoch,
            still_coordinator=lambda: shard.machine is machine,
            on_complete=lambda order: self._complete(shard, order.prepared),
        )
        self._pending[order.prepared.transactional_id] = pending
        self.markers.send(pending, left)

    def _complete(self, shard: TransactionShard, prepared: Transaction) -> None:
        if self._pending:
            self._pending.pop(prepared.transactional_id, None)
        shard.submit_lazily(MarkersWritten(prepared), encode_key(prepared.transactional_id))
        if not self._unflushed:
            self.broker.loop.call_later(FLUSH_SECONDS, self._flush)
        self._unflushed.add(shard)

    def _flush(self) -> None:
        shards, self._unflushed = self._unflushed, set()
        for shard in shards:
            shard.flush()

    def _observe(self, record: Transaction) -> None:
        self.timeline.note(record)
        if record.cause is not None:
            self._forced(record)
        if record.state in COMPLETE:
            self.counts.completed(record.state)
            if self._completions:
                waiting = self._completions.pop(record.transactional_id, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(None)

    def _forced(self, record: Transaction) -> None:
        assert record.cause is not None
        self.timeline.explain(*record.cause)
        self.counts.was_forced(record.cause.reason)
        log.info(
            "fenced a producer: %s",
            record.cause.reason,
            extra={
                "transactional_id": record.transactional_id,
                "producer_id": record.cause.producer_id,
                "epoch": record.cause.epoch,
            },
        )

    # What the catalog tells

    def topic_created(self, topic: Topic) -> None:
        if topic.name == TRANSACTION_STATE:
            self._make_shards()  # brand-new and empty: loaded when first asked

    def partitions_added(self, topic: Topic, first: int) -> None:
        """Ids stay with their shards until the next start, as in Kafka."""

    def topic_deleted(self, topic: Topic) -> None:
        """As in Kafka, whoever may delete it may: every transactional id is forgotten with it."""
        if topic.name == TRANSACTION_STATE:
            for shard in self.shards:
                shard.unload()
            self.shards = []
            self._pending.clear()

    def topic_configured(self, topic: Topic) -> None:
        pass

    # Loading

    def _make_topic(self) -> list[TransactionShard]:
        self.broker.catalog.ensure_internal_topic(TRANSACTION_STATE)
        return self.shards

    def _make_shards(self) -> None:
        self.shards = [
            self._new_shard(partition) for partition in self.broker.partitions.of(TRANSACTION_STATE)
        ]

    def _new_shard(self, partition: Partition) -> TransactionShard:
        return Shard(
            partition,
            self._new_machine,
            TransactionCodec(),
            now_ms=self.broker.now_ms,
            run=self._run,
            observe=self._observe,
            failed=self._loader.bring_back,
        )

    def _new_machine(self) -> Coordinator:
        settings = self.broker.settings
        rules = Rules(
            max_timeout_ms=settings["transaction.max.timeout.ms"],
            id_expiration_ms=settings["transactional.id.expiration.ms"],
            two_phase=settings["transaction.two.phase.commit.enable"],
        )
        return Coordinator(self.broker.partitions.producer_ids.next, rules)

    # Time

    async def _sweep_timeouts(self) -> None:
        settings = self.broker.settings
        name = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        while True:
            await asyncio.sleep(settings[name] / 1000)
            for shard in self.shards:
                if shard.machine is not None and shard.machine.open_ids:
                    shard.submit(AbortTimedOut())
                    await asyncio.sleep(0)  # ten thousand open ones take some milliseconds

    async def _sweep_idle(self) -> None:
        settings = self.broker.settings
        name = "transaction.remove.expired.transaction.cleanup.interval.ms"
        while True:
            await asyncio.sleep(settings[name] / 1000)
            for shard in self.shards:
                shard.submit(ForgetIdle())
                await asyncio.sleep(0)


def _by_partition(reply: PartitionErrors) -> Errors:
    return reply.by_partition
