"""AddOffsetsToTxn (API key 25, versions 0-4): put a group's offsets into the open transaction.

Who may:   WRITE on the TransactionalId and READ on the Group.
Answers:   when the new state is durable. The offsets follow in TxnOffsetCommit, which goes to the
           group's coordinator.
Versions:  2 PRODUCER_FENCED, 3 flexible, 4 TRANSACTION_ABORTABLE.
Not here:  states and epochs (core/transactions/partitions): to them it is one more partition, that
           of __consumer_offsets.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.coordinators.errors import fenced_for
from semel.broker.replies import NowOrLater, when
from semel.core.transactions.commands import AddPartitions
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

API_KEY = 25
VERSIONS = ADVERTISED[API_KEY]

FENCED_SINCE = 2


def handle(
    ctx: Context, request: AddOffsetsToTxnRequest, version: int
) -> NowOrLater[AddOffsetsToTxnResponse]:
    name, group = request.transactional_id, request.group_id
    if not ctx.may("WRITE", "TRANSACTIONAL_ID", name):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.may("READ", "GROUP", group):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not name:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    home = ctx.groups.shard_of(group).partition
    partition = frozenset({(home.topic.name, home.index)})
    command = AddPartitions(name, request.producer_id, request.producer_epoch, partition)
    return when(
        ctx.transactions.submit(command),
        lambda reply: AddOffsetsToTxnResponse(
            error_code=fenced_for(reply.error, version, FENCED_SINCE),
            cause=ctx.transactions.why(reply.error, request.producer_id, request.producer_epoch),
        ),
    )
