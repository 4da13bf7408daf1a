"""InitProducerId: an identity for an idempotent or transactional producer.

Who may: IDEMPOTENT_WRITE on the CLUSTER, or WRITE on any TOPIC; WRITE on the TRANSACTIONAL_ID.
Answers without a transactional id with a fresh producer id and epoch 0, never handed out before.
Versions 0-5. Not here: what a transactional id's coordinator decides, in `broker/transactions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from semel.broker.context import CLUSTER_NAME
from semel.wire.batches import NO_EPOCH, NO_PRODUCER_ID
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from semel.broker.context import Context

API_KEY = 22
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: InitProducerIdRequest, version: int) -> Any:
    if request.transactional_id is not None:
        return ctx.transactions.init_producer_id(ctx, request, version)
    if not _may_write_at_all(ctx):
        return _failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_EPOCH):
        return _failed(ErrorCode.INVALID_REQUEST)
    return InitProducerIdResponse(producer_id=ctx.partitions.producer_ids.next(), producer_epoch=0)


def _may_write_at_all(ctx: Context) -> bool:
    return ctx.may("IDEMPOTENT_WRITE", "CLUSTER", CLUSTER_NAME) or any(
        ctx.may("WRITE", "TOPIC", topic) for topic in ctx.catalog.topics
    )


def _failed(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_epoch=NO_EPOCH)
