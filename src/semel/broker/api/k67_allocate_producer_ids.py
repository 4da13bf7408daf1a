"""AllocateProducerIds (API key 67, version 0): a block of producer ids for another broker.

Who may:   CLUSTER_ACTION on the Cluster. Sent between brokers, hence not among the advertised APIs.
Answers:   when the block is durable; it is never given out again.
"""

from __future__ import annotations

from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode
from semel.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

API_KEY = 67
VERSIONS = range(0, 1)


def handle(
    ctx: Context, request: AllocateProducerIdsRequest, version: int
) -> AllocateProducerIdsResponse:
    if not ctx.may("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    block = ctx.catalog.allocate_producer_ids()
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))
