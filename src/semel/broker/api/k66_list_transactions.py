"""ListTransactions (API key 66, versions 0-2): the transactional ids this broker coordinates.

Who may:   DESCRIBE on the TransactionalId; others are left out.
Answers:   from memory; COORDINATOR_LOAD_IN_PROGRESS while part of it is still being read.
Versions:  1 filter by duration, 2 by a pattern for the whole id.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when_all
from semel.core.transactions.commands import Found, List
from semel.core.transactions.states import STATES_BY_NAME
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

API_KEY = 66
VERSIONS = ADVERTISED[API_KEY]

State = ListTransactionsResponse.TransactionState


def handle(
    ctx: Context, request: ListTransactionsRequest, version: int
) -> NowOrLater[ListTransactionsResponse]:
    names = request.state_filters
    states = frozenset(STATES_BY_NAME[name] for name in names if name in STATES_BY_NAME)
    command = List(
        states if names else None,
        frozenset(request.producer_id_filters),
        request.duration_filter,
        request.transactional_id_pattern,
    )
    unknown = [name for name in names if name not in STATES_BY_NAME]
    return when_all(
        ctx.transactions.submit_to_all(command), lambda found: _response(ctx, unknown, found)
    )


def _response(ctx: Context, unknown: list[str], found: list[Found]) -> ListTransactionsResponse:
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    for shard in found:
        if shard.error is not ErrorCode.NONE:
            return ListTransactionsResponse(error_code=shard.error)
        response.transaction_states += [
            State(
                transactional_id=txn.transactional_id,
                producer_id=txn.producer_id,
                transaction_state=txn.state.kafka_name,
            )
            for txn in shard.transactions
            if ctx.may_quietly("DESCRIBE", "TRANSACTIONAL_ID", txn.transactional_id)
        ]
    return response
