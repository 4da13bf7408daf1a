"""ReadShareGroupStateSummary (API key 87, versions 0-1): a share group's progress (KIP-932).

Who may:   CLUSTER_ACTION on the Cluster: only brokers ask.
Answers:   NOT_COORDINATOR for each partition: without share groups nobody coordinates their state.
Versions:  1 complete deliveries.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

API_KEY = 87
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: ReadShareGroupStateSummaryRequest, version: int
) -> ReadShareGroupStateSummaryResponse:
    require_cluster(ctx, "CLUSTER_ACTION")
    if not request.group_id:
        return ReadShareGroupStateSummaryResponse()
    raise ApiError(
        ErrorCode.NOT_COORDINATOR,
        "Unable to read share group state summary: This is not the correct coordinator.",
    )
