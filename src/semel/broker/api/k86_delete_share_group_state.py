"""DeleteShareGroupState (API key 86, version 0): a share group reads no longer (KIP-932).

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
from semel.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)

API_KEY = 86
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: DeleteShareGroupStateRequest, version: int
) -> DeleteShareGroupStateResponse:
    require_cluster(ctx, "CLUSTER_ACTION")
    if not request.group_id:
        return DeleteShareGroupStateResponse()
    raise ApiError(
        ErrorCode.NOT_COORDINATOR,
        "Unable to delete share group state: This is not the correct coordinator.",
    )
