"""WriteShareGroupState (API key 85, versions 0-1): how far a share group came (KIP-932).

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
from semel.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

API_KEY = 85
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: WriteShareGroupStateRequest, version: int
) -> WriteShareGroupStateResponse:
    require_cluster(ctx, "CLUSTER_ACTION")
    if not request.group_id:
        return WriteShareGroupStateResponse()
    raise ApiError(
        ErrorCode.NOT_COORDINATOR,
        "Unable to write share group state: This is not the correct coordinator.",
    )
