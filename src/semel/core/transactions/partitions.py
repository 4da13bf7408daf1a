"""AddPartitionsToTxn, AddOffsetsToTxn: a transaction begins with the first partition added to it.

A group's offsets are a partition like any other here: that of __consumer_offsets. The same decision
serves version 2, where the partition's leader adds on the producer's behalf (KIP-890).
"""

from semel.core.machine import Decision
from semel.core.transactions.commands import (
    OK,
    AddPartitions,
    PartitionErrors,
    Reply,
    VerifyPartitions,
)
from semel.core.transactions.states import ONGOING, PREPARED
from semel.core.transactions.transaction import NO_EPOCH, TopicPartition, Transaction
from semel.wire.errors import ErrorCode


def add_partitions(txn: Transaction | None, command: AddPartitions, now_ms: int) -> Decision:
    error = refusal(txn, command.producer_id, command.epoch)
    if error is not None:
        return Decision(Reply(error))
    assert txn is not None
    is_open = txn.state is ONGOING
    if is_open and command.partitions <= txn.partitions:
        return _ALREADY_THERE
    if is_open:
        partitions, started_at_ms = txn.partitions | command.partitions, txn.started_at_ms
    else:
        partitions, started_at_ms = command.partitions, now_ms
    txn = txn.moved(
        ONGOING,
        now_ms,
        partitions=partitions,
        started_at_ms=started_at_ms,
        client_version=command.client_version,
    )
    return Decision(OK, (txn,))


def includes(
    txn: Transaction | None, producer_id: int, epoch: int, partition: TopicPartition
) -> bool:
    """Whether a partition is in this producer's open transaction. Its twin is
    `verify_partitions`."""
    return (
        txn is not None
        and txn.state is ONGOING
        and partition in txn.partitions
        and refusal(txn, producer_id, epoch) is None
    )


def verify_partitions(txn: Transaction | None, command: VerifyPartitions) -> Decision:
    """Asked by a partition's leader before the first record of a transaction is appended."""
    error = refusal(txn, command.producer_id, command.epoch)
    if error is not None:
        return Decision(command.refused(error))
    assert txn is not None
    missing = ErrorCode.TRANSACTION_ABORTABLE
    there = txn.partitions if txn.state is ONGOING else frozenset()
    return Decision(
        PartitionErrors(
            by_partition={
                partition: ErrorCode.NONE if partition in there else missing
                for partition in command.partitions
            }
        )
    )


def refusal(txn: Transaction | None, producer_id: int, epoch: int) -> ErrorCode | None:
    """Whether this producer may work in the id's transaction now."""
    if txn is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    owner_id, owner_epoch = txn.owner
    if producer_id != owner_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if epoch != owner_epoch:
        return ErrorCode.PRODUCER_FENCED
    if txn.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if txn.next_epoch != NO_EPOCH:
        return ErrorCode.INVALID_TXN_STATE  # prepared by its former owner: it can only be ended
    return None


_ALREADY_THERE = Decision(OK)
