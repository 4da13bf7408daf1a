"""Delivers transaction markers to the leaders of their partitions, until every one is written.

Where this broker leads, the marker is appended in process, at once. Other brokers are sent
WriteTxnMarkers: one queue and at most one request per broker, and what queues up meanwhile goes
with the next. Partitions without a known leader wait in a queue of their own. What an answer means
is the table in `core/transactions/markers`; a topic that is gone is owed nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from semel.broker.catalog.internal_topics import CONSUMER_OFFSETS
from semel.core.partition.admission import Refusal
from semel.core.transactions.commands import WriteMarkers
from semel.core.transactions.markers import MarkersOwed, Verdict
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


class Debt:
    """The markers one prepared transaction owes, and whom to tell when they are written."""

    __slots__ = ("late", "marker", "on_paid", "owed", "settled", "still_coordinator")

    def __init__(
        self,
        order: WriteMarkers,
        coordinator_epoch: int,
        still_coordinator: Callable[[], bool],
        on_paid: Callable[[WriteMarkers], None],
    ) -> None:
        self.owed = MarkersOwed(order)
        self.marker = marker_of(order.prepared, coordinator_epoch)
        self.still_coordinator = still_coordinator
        self.on_paid = on_paid
        self.settled = False
        self.late: frozenset[TopicPartition] = frozenset()
        """Partitions whose delay was told: ten tries a second need no line each."""


Errand = tuple[Debt, TopicPartition]
Answers = Iterable[tuple[Errand, ErrorCode]]


class Channel(Protocol):
    """A way to another broker. `send` never raises: a lost connection is NETWORK_EXCEPTION."""

    async def send(self, errands: list[Errand]) -> Answers: ...

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
        self._queues: dict[int, list[Errand]] = {}
        self._sending: set[int] = set()
        self._unplaced: list[Errand] = []
        self._again_timer: asyncio.TimerHandle | None = None

    def write(self, prepared: Transaction, coordinator_epoch: int) -> Left:
        """Write what can be written now, in this very call: where one broker leads everything,
        nothing is left, and nobody has to keep a debt."""
        left: Left = {}
        marker = marker_of(prepared, coordinator_epoch)
        for partition in sorted(prepared.partitions):
            if self.leader_of is not None:
                left[partition] = None
            elif (written := self.append_here(*partition, marker)) is not DURABLE:
                left[partition] = written
        return left

    def send(self, debt: Debt, left: Left) -> None:
        """See to what `write` has left."""
        debt.owed.partitions.intersection_update(left)
        for partition, written in left.items():
            if written is None:
                self._place(debt, partition)
            else:
                self._written_here(debt, partition, written)
        self._settle(debt)

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
        self, debt: Debt, partition: TopicPartition, written: Ticket | Refusal
    ) -> None:
        if isinstance(written, Refusal):
            if written.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._forget(debt, partition)
            else:
                self._hear(debt, partition, written.error, written.message)
        else:
            written.add_callback(lambda ticket: self._durable(debt, partition, ticket))

    def _durable(self, debt: Debt, partition: TopicPartition, ticket: Ticket) -> None:
        failed = ticket.error is not None
        error = ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE
        self._hear(debt, partition, error, str(ticket.error))
        self._settle(debt)

    # Anywhere

    def _place(self, debt: Debt, partition: TopicPartition) -> None:
        place = HERE if self.leader_of is None else self.leader_of(*partition)
        if place == HERE:
            self._written_here(debt, partition, self.append_here(*partition, debt.marker))
        elif place == GONE:
            self._forget(debt, partition)
        elif isinstance(place, int):
            self._queues.setdefault(place, []).append((debt, partition))
            self._wake(place)
        else:
            self._try_again(debt, partition)

    def _forget(self, debt: Debt, partition: TopicPartition) -> None:
        log.info("a topic is gone: its marker is not owed", extra={"partition": partition})
        debt.owed.forget(partition)

    def _hear(self, debt: Debt, partition: TopicPartition, error: ErrorCode, why: str = "") -> None:
        verdict = debt.owed.hear(partition, error)
        facts = {"order": debt.owed.order, "partition": partition, "error": error.name, "why": why}
        if verdict is Verdict.AGAIN:
            if partition not in debt.late:
                debt.late |= {partition}
                log.info("a marker is sent again until it is written", extra=facts)
            self._try_again(debt, partition)
        elif verdict is Verdict.CANCEL:
            log.warning("sending of a transaction's markers ends", extra=facts)
        elif verdict is Verdict.BUG:
            log.error("a marker was refused for no reason that we know", extra=facts)

    def _settle(self, debt: Debt) -> None:
        if debt.owed.paid and not debt.settled and debt.still_coordinator():
            debt.settled = True
            debt.on_paid(debt.owed.order)

    def _try_again(self, debt: Debt, partition: TopicPartition) -> None:
        self._unplaced.append((debt, partition))
        if self._again_timer is None:
            self._again_timer = self._broker.loop.call_later(RETRY_SECONDS, self._place_again)

    def _place_again(self) -> None:
        self._again_timer = None
        errands, self._unplaced = self._unplaced, []
        for debt, partition in errands:
            if debt.owed.cancelled or not debt.still_coordinator():
                continue
            self._place(debt, partition)
            self._settle(debt)

    # Elsewhere

    def _wake(self, broker_id: int) -> None:
        if broker_id not in self._sending:
            self._sending.add(broker_id)
            self._broker.spawn(self._drain(broker_id))

    async def _drain(self, broker_id: int) -> None:
        """One request at a time; each takes all that has queued up."""
        try:
            while errands := self._take(broker_id):
                channel = self._channels.get(broker_id)
                if channel is None:
                    assert self._open_channel is not None, f"no way to broker {broker_id}"
                    channel = self._channels[broker_id] = self._open_channel(broker_id)
                for (debt, partition), error in await channel.send(errands):
                    self._hear(debt, partition, error)
                    self._settle(debt)
        finally:
            self._sending.discard(broker_id)

    def _take(self, broker_id: int) -> list[Errand]:
        """What is still worth sending: a coordinator that lost its partition has nothing to say."""
        return [
            (debt, partition)
            for debt, partition in self._queues.pop(broker_id, ())
            if not debt.owed.cancelled and debt.still_coordinator()
        ]
