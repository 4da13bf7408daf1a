"""InitializeShareGroupState (API key 83, version 0): a share group begins to read (KIP-932).

Who may:   CLUSTER_ACTION on the Cluster: only brokers ask.
Answers:   NOT_COORDINATOR for each partition: without share groups nobody coordinates their state.
Versions:  0 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

API_KEY = 83
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: InitializeShareGroupStateRequest, version: int
) -> InitializeShareGroupStateResponse:
    require_cluster(ctx, "CLUSTER_ACTION")
    if not request.group_id:
        return InitializeShareGroupStateResponse()
    raise ApiError(
        ErrorCode.NOT_COORDINATOR,
        "Unable to initialize share group state: This is not the correct coordinator.",
    )
