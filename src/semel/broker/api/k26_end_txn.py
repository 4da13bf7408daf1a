"""EndTxn (API key 26, versions 0-5): commit or abort the transaction of a transactional id.

Who may:   WRITE on the TransactionalId.
Answers:   once the outcome is durable and the markers of the partitions led here are written.
Versions:  2 PRODUCER_FENCED, 3 flexible, 4 TRANSACTION_ABORTABLE, 5 (transaction version 2) bumps
           the epoch and returns it.
Not here:  epochs, states and retries (core/transactions/ending).
"""

from __future__ import annotations

from time import perf_counter

from semel.broker.context import Context
from semel.broker.coordinators.errors import fenced_for
from semel.broker.replies import NowOrLater, when
from semel.core.transactions.commands import EndTxn, Reply
from semel.core.transactions.transaction import TV_0, TV_2
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

API_KEY = 26
VERSIONS = ADVERTISED[API_KEY]

FENCED_SINCE = 2
EPOCH_BUMP_SINCE = 5


def handle(ctx: Context, request: EndTxnRequest, version: int) -> NowOrLater[EndTxnResponse]:
    name = request.transactional_id
    if not ctx.may("WRITE", "TRANSACTIONAL_ID", name):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not name:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    began = perf_counter()
    transactions = ctx.transactions

    def respond(reply: Reply) -> EndTxnResponse:
        transactions.counts.ended(reply.error, (perf_counter() - began) * 1000)
        response = EndTxnResponse()
        if reply.error:
            response.error_code = fenced_for(reply.error, version, FENCED_SINCE)
            response.cause = transactions.why(
                reply.error, request.producer_id, request.producer_epoch
            )
        if version >= EPOCH_BUMP_SINCE:
            response.producer_id, response.producer_epoch = reply.producer_id, reply.epoch
        return response

    command = EndTxn(
        name,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        TV_2 if version >= EPOCH_BUMP_SINCE else TV_0,
    )
    return when(transactions.submit(command), respond)
