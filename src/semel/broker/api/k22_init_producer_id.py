"""InitProducerId: an identity for an idempotent or transactional producer.

Who may: IDEMPOTENT_WRITE on the CLUSTER, or WRITE on some TOPIC; WRITE on the TRANSACTIONAL_ID, and
TWO_PHASE_COMMIT on it for that. Answers without a transactional id with a fresh producer id and
epoch 0, never handed out before. Versions 0-5: 3 naming what it holds (KIP-360), 4 PRODUCER_FENCED;
6 (KIP-939) only where two-phase commit is switched on. Not here: what a coordinator decides, in
`core/transactions/initializing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.broker.context import CLUSTER_NAME
from semel.broker.coordinators.errors import fenced_for
from semel.broker.replies import NowOrLater, when
from semel.core.transactions.commands import InitProducerId as Init
from semel.core.transactions.commands import Reply
from semel.wire.batches import NO_EPOCH, NO_PRODUCER_ID
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from semel.broker.context import Context

API_KEY = 22
VERSIONS = ADVERTISED[API_KEY]

FENCED_SINCE = 4
TWO_PHASE_SINCE = 6


def handle(
    ctx: Context, request: InitProducerIdRequest, version: int
) -> NowOrLater[InitProducerIdResponse]:
    if request.transactional_id is not None:
        return _transactional(ctx, request, request.transactional_id, version)
    if not _may_write_at_all(ctx):
        return _failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return _failed(ErrorCode.INVALID_REQUEST)
    return InitProducerIdResponse(producer_id=ctx.partitions.producer_ids.next(), producer_epoch=0)


def _transactional(
    ctx: Context, request: InitProducerIdRequest, transactional_id: str, version: int
) -> NowOrLater[InitProducerIdResponse]:
    if not ctx.may("WRITE", "TRANSACTIONAL_ID", transactional_id):
        return _failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.enable2_pc and not ctx.may("TWO_PHASE_COMMIT", "TRANSACTIONAL_ID", transactional_id):
        return _failed(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    command = Init(
        transactional_id,
        request.transaction_timeout_ms,
        request.producer_id,
        request.producer_epoch,
        request.enable2_pc,
        request.keep_prepared_txn,
        who=f"client {ctx.client_id} from {ctx.connection.peer_host}",
    )
    return when(
        ctx.transactions.submit(command), lambda reply: _answer(ctx, request, reply, version)
    )


def _answer(
    ctx: Context, request: InitProducerIdRequest, reply: Reply, version: int
) -> InitProducerIdResponse:
    response = InitProducerIdResponse(
        cause=ctx.transactions.why(reply.error, request.producer_id, request.producer_epoch),
        error_code=fenced_for(reply.error, version, FENCED_SINCE),
        producer_id=reply.producer_id,
        producer_epoch=reply.epoch,
    )
    if version >= TWO_PHASE_SINCE:
        response.ongoing_txn_producer_id = reply.ongoing_producer_id
        response.ongoing_txn_producer_epoch = reply.ongoing_epoch
    return response


def _may_write_at_all(ctx: Context) -> bool:
    return ctx.may_quietly("IDEMPOTENT_WRITE", "CLUSTER", CLUSTER_NAME) or ctx.may_any(
        "WRITE", "TOPIC"
    )


def _failed(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_EPOCH)
