"""Delivers transaction markers to the leaders of their partitions, until every one is written.

Where this broker leads, the marker is appended in process, at once. Other brokers are sent
WriteTxnMarkers: one queue and at most one request per broker, and what queues up meanwhile goes
with the next. Partitions without a known leader wait in a queue of their own. What an answer means
is the table in `core/transactions/markers`; a topic that is gone needs no marker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from semel.broker.catalog.internal_topics import CONSUMER_OFFSETS
from semel.core.partition.admission import Refusal
from semel.core.transactions.commands import WriteMarkers
from semel.core.transactions.markers import MarkerProgress, MarkerVerdict
from semel.core.transactions.transaction import TopicPartition, Transaction
from semel.store.interface import DURABLE, Ticket
from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.broker.server import Broker

log = logging.getLogger("semel.markers")

RETRY_SECONDS = 0.1
HERE, NOWHERE, GONE = "here", "nowhere", "gone"
Place = int | str


MarkerFields = tuple[int, int, bool, int, int]
"""Producer id and epoch, whether it is a commit, coordinator epoch, transaction version."""

Left = dict[TopicPartition, Ticket | Refusal | None]
"""Markers that are not written yet, and why: not durable, refused, or led elsewhere."""


def marker_of(prepared: Transaction, coordinator_epoch: int) -> MarkerFields:
    return (
        prepared.producer_id,
        prepared.epoch,
        prepared.committing,
        coordinator_epoch,
        prepared.client_version,
    )


class PendingCompleteTxn:
    """A prepared transaction whose markers are under way, and whom to tell when all are written
    (Kafka's name)."""

    __slots__ = ("late", "marker", "on_complete", "progress", "settled", "still_coordinator")

    def __init__(
        self,
        order: WriteMarkers,
        coordinator_epoch: int,
        still_coordinator: Callable[[], bool],
        on_complete: Callable[[WriteMarkers], None],
    ) -> None:
        self.progress = MarkerProgress(order)
        self.marker = marker_of(order.prepared, coordinator_epoch)
        self.still_coordinator = still_coordinator
        self.on_complete = on_complete
        self.settled = False
        self.late: frozenset[TopicPartition] = frozenset()
        """Partitions whose delay was told: ten tries a second need no line each."""


MarkerToSend = tuple[PendingCompleteTxn, TopicPartition]
Answers = Iterable[tuple[MarkerToSend, ErrorCode]]


class Channel(Protocol):
    """A way to another broker. `send` never raises: a lost connection is NETWORK_EXCEPTION."""

    async def send(self, markers: list[MarkerToSend]) -> Answers: ...

    async def close(self) -> None: ...


class MarkerSender:
    """`leader_of` tells where a partition is led: HERE, a broker's id, NOWHERE yet, or GONE.
    Without it, every partition that there is is led here."""

    def __init__(
        self,
        broker: Broker,
        leader_of: Callable[[str, int], Place] | None = None,
        open_channel: Callable[[int], Channel] | None = None,
    ) -> None:
        self._broker = broker
        self.leader_of = leader_of
        self._open_channel = open_channel
        self._channels: dict[int, Channel] = {}
        self._queues: dict[int, list[MarkerToSend]] = {}
        self._sending: set[int] = set()
        self._unplaced: list[MarkerToSend] = []
        self._again_timer: asyncio.TimerHandle | None = None

    def write(self, prepared: Transaction, coordinator_epoch: int) -> Left:
        """Write what can be written now, in this very call: where one broker leads everything,
        nothing is left to be waited for. Its twin is `send` of everything."""
        left: Left = {}
        marker = marker_of(prepared, coordinator_epoch)
        for partition in sorted(prepared.partitions):
            if self.leader_of is not None:
                left[partition] = None
            elif (written := self.append_here(*partition, marker)) is not DURABLE:
                left[partition] = written
        return left

    def send(self, pending: PendingCompleteTxn, left: Left) -> None:
        """See to what `write` has left; given all partitions (None each), it does the same."""
        pending.progress.partitions.intersection_update(left)
        for partition, written in left.items():
            if written is None:
                self._place(pending, partition)
            else:
                self._written_here(pending, partition, written)
        self._settle(pending)

    @property
    def queued(self) -> dict[str, int]:
        """Markers waiting, by destination."""
        lengths = {str(broker): len(queue) for broker, queue in self._queues.items() if queue}
        if self._unplaced:
            lengths["unknown"] = len(self._unplaced)
        return lengths

    async def close(self) -> None:
        if self._again_timer is not None:
            self._again_timer.cancel()
        for channel in self._channels.values():
            await channel.close()

    # Here

    def append_here(self, topic: str, index: int, marker: MarkerFields) -> Ticket | Refusal:
        """Append one marker to a partition that this broker leads."""
        if topic == CONSUMER_OFFSETS:
            # Its coordinator has to hear of it: offsets wait for this marker.
            return self._broker.groups.append_marker(index, *marker)
        partition = self._broker.partitions.find(topic, index)
        if partition is None:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no {topic}-{index}.")
        appended = partition.append_marker(*marker)
        return appended if isinstance(appended, Refusal) else appended.ticket

    def _written_here(
        self, pending: PendingCompleteTxn, partition: TopicPartition, written: Ticket | Refusal
    ) -> None:
        if isinstance(written, Refusal):
            if written.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._forget(pending, partition)
            else:
                self._answered(pending, partition, written.error, written.message)
        else:
            written.add_callback(lambda ticket: self._durable(pending, partition, ticket))

    def _durable(
        self, pending: PendingCompleteTxn, partition: TopicPartition, ticket: Ticket
    ) -> None:
        failed = ticket.error is not None
        error = ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE
        self._answered(pending, partition, error, str(ticket.error))
        self._settle(pending)

    # Anywhere

    def _place(self, pending: PendingCompleteTxn, partition: TopicPartition) -> None:
        place = HERE if self.leader_of is None else self.leader_of(*partition)
        if place == HERE:
            self._written_here(pending, partition, self.append_here(*partition, pending.marker))
        elif place == GONE:
            self._forget(pending, partition)
        elif isinstance(place, int):
            self._queues.setdefault(place, []).append((pending, partition))
            self._wake(place)
        else:
            self._try_again(pending, partition)

    def _forget(self, pending: PendingCompleteTxn, partition: TopicPartition) -> None:
        log.info("a topic is gone: it needs no marker", extra={"partition": partition})
        pending.progress.forget(partition)

    def _answered(
        self,
        pending: PendingCompleteTxn,
        partition: TopicPartition,
        error: ErrorCode,
        why: str = "",
    ) -> None:
        verdict = pending.progress.answered(partition, error)
        facts = {
            "order": pending.progress.order,
            "partition": partition,
            "error": error.name,
            "why": why,
        }
        if verdict is MarkerVerdict.AGAIN:
            if partition not in pending.late:
                pending.late |= {partition}
                log.info("a marker is sent again until it is written", extra=facts)
            self._try_again(pending, partition)
        elif verdict is MarkerVerdict.CANCEL:
            log.warning("sending of a transaction's markers ends", extra=facts)
        elif verdict is MarkerVerdict.BUG:
            log.error("a marker was refused for no reason that we know", extra=facts)

    def _settle(self, pending: PendingCompleteTxn) -> None:
        if pending.progress.complete and not pending.settled and pending.still_coordinator():
            pending.settled = True
            pending.on_complete(pending.progress.order)

    def _try_again(self, pending: PendingCompleteTxn, partition: TopicPartition) -> None:
        self._unplaced.append((pending, partition))
        if self._again_timer is None:
            self._again_timer = self._broker.loop.call_later(RETRY_SECONDS, self._place_again)

    def _place_again(self) -> None:
        self._again_timer = None
        markers, self._unplaced = self._unplaced, []
        for pending, partition in markers:
            if pending.progress.cancelled or not pending.still_coordinator():
                continue
            self._place(pending, partition)
            self._settle(pending)

    # Elsewhere

    def _wake(self, broker_id: int) -> None:
        if broker_id not in self._sending:
            self._sending.add(broker_id)
            self._broker.spawn(self._drain(broker_id))

    async def _drain(self, broker_id: int) -> None:
        """One request at a time; each takes all that has queued up."""
        try:
            while markers := self._take(broker_id):
                channel = self._channels.get(broker_id)
                if channel is None:
                    assert self._open_channel is not None, f"no way to broker {broker_id}"
                    channel = self._channels[broker_id] = self._open_channel(broker_id)
                for (pending, partition), error in await channel.send(markers):
                    self._answered(pending, partition, error)
                    self._settle(pending)
        finally:
            self._sending.discard(broker_id)

    def _take(self, broker_id: int) -> list[MarkerToSend]:
        """What is still worth sending: a coordinator that lost its partition has nothing to say."""
        return [
            (pending, partition)
            for pending, partition in self._queues.pop(broker_id, ())
            if not pending.progress.cancelled and pending.still_coordinator()
        ]
