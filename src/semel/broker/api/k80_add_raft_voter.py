"""AddRaftVoter (API key 80, versions 0-1): one more controller that votes.

Who may:   ALTER on the Cluster.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose `kraft.version` is 0: one node votes alone.
Versions:  1 whether to wait until it is committed.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

API_KEY = 80
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: AddRaftVoterRequest, version: int) -> AddRaftVoterResponse:
    require_cluster(ctx, "ALTER")
    own = ctx.catalog.cluster_id
    if request.cluster_id is not None and request.cluster_id != own:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{own}"',
        )
    raise ApiError(
        ErrorCode.UNSUPPORTED_VERSION,
        "Cluster doesn't support adding voter because the kraft.version feature is 0",
    )
