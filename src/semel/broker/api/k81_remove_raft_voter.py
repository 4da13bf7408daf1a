"""RemoveRaftVoter (API key 81, version 0): a controller votes no longer.

Who may:   ALTER on the Cluster.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose `kraft.version` is 0: one node votes alone.
Versions:  0 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

API_KEY = 81
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: RemoveRaftVoterRequest, version: int) -> RemoveRaftVoterResponse:
    require_cluster(ctx, "ALTER")
    own = ctx.catalog.cluster_id
    if request.cluster_id is not None and request.cluster_id != own:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{own}"',
        )
    raise ApiError(
        ErrorCode.UNSUPPORTED_VERSION,
        "Cluster doesn't support removing voter because the kraft.version feature is 0",
    )
