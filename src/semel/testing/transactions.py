"""Transactions of a broker under test: those that are open, and taking one over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from semel.broker.replies import settled
from semel.core.transactions.commands import InitProducerId
from semel.core.transactions.states import ONGOING

if TYPE_CHECKING:
    from semel.testing.running import BrokerUnderTest

_TIMEOUT_MS = 60_000


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One that is neither committed nor aborted yet."""

    transactional_id: str
    state: str
    """As Kafka names it: Ongoing, PrepareCommit, PrepareAbort."""
    producer_id: int
    producer_epoch: int
    open_ms: int
    """For how long, by the broker's clock."""
    timeout_ms: int
    partitions: tuple[tuple[str, int], ...]
    """Those written to, as (topic, partition)."""

    def __str__(self) -> str:
        where = ", ".join(f"{topic}-{index}" for topic, index in self.partitions)
        return (
            f"{self.transactional_id!r}: {self.state} for {self.open_ms / 1000:.1f} s of "
            f"{self.timeout_ms / 1000:g} s, producer {self.producer_id} epoch "
            f"{self.producer_epoch}, in {where or 'no partition yet'}"
        )


def open_transactions(broker: BrokerUnderTest) -> list[OpenTransaction]:
    now_ms = broker.now_ms()
    found = [
        OpenTransaction(
            txn.transactional_id,
            txn.state.kafka_name,
            txn.producer_id,
            txn.epoch,
            max(0, now_ms - txn.started_at_ms),
            txn.timeout_ms,
            tuple(sorted(txn.partitions)),
        )
        for txn in broker.known_transactions()
        if txn.state is ONGOING or txn.prepared
    ]
    return sorted(found, key=lambda txn: -txn.open_ms)


async def fence(broker: BrokerUnderTest, transactional_id: str) -> None:
    known = {txn.transactional_id for txn in broker.known_transactions()}
    if transactional_id not in known:
        raise LookupError(
            f"no producer with the transactional id {transactional_id!r} was here yet; "
            f"there are: {', '.join(sorted(known)) or '-'}"
        )
    command = InitProducerId(transactional_id, _TIMEOUT_MS, who="the test (kafka.fence)")
    reply = await settled(broker.transactions.submit(command))
    while reply.error.name == "CONCURRENT_TRANSACTIONS":  # the aborted one is being ended
        reply = await settled(broker.transactions.submit(command))
    if reply.error:
        raise RuntimeError(f"{transactional_id!r} cannot be taken over: {reply.error.name}")
