"""FindCoordinator (API key 10, versions 0-6): which broker coordinates a group or transactional id.

Who may:   DESCRIBE on the Group, or on the TransactionalId; of shares, which have no coordinator
           here, CLUSTER_ACTION on the Cluster.
Answers:   this broker, unless its disk keeps it from it; the internal topic is made first, so that
           what follows finds it.
Versions:  1 key types, 3 flexible, 4 several keys at once.
Not here:  which of the topic's partitions a key belongs to (core/placing).
"""

from __future__ import annotations

from semel.broker.context import CLUSTER_NAME, Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

API_KEY = 10
VERSIONS = ADVERTISED[API_KEY]

GROUP, TRANSACTION, SHARE = 0, 1, 2
SHARE_SINCE = 6
SEVERAL_SINCE = 4

Found = FindCoordinatorResponse.Coordinator


def handle(ctx: Context, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    if version >= SEVERAL_SINCE:
        return FindCoordinatorResponse(
            coordinators=[
                _find(ctx, key, request.key_type, version) for key in request.coordinator_keys
            ]
        )
    found = _find(ctx, request.key, request.key_type, version)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(ctx: Context, key: str, key_type: int, version: int) -> Found:
    if key_type == TRANSACTION:
        if not ctx.may("DESCRIBE", "TRANSACTIONAL_ID", key):
            return _refused(key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        partition = ctx.transactions.shard_of(key).partition
    elif key_type == GROUP:
        if not ctx.may("DESCRIBE", "GROUP", key):
            return _refused(key, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        partition = ctx.groups.shard_of(key).partition
    elif (
        key_type == SHARE
        and version >= SHARE_SINCE
        and not ctx.may("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
    ):
        return _refused(key, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        return _refused(key, ErrorCode.INVALID_REQUEST)
    offline = partition.log.offline
    if offline is not None:  # to Kafka a partition without a leader
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, str(offline))
    address = ctx.broker.advertised(ctx.connection)
    return Found(key=key, node_id=ctx.catalog.node_id, host=address.host, port=address.port)


def _refused(key: str, error: ErrorCode, why: str | None = None) -> Found:
    message = error.meaning if why is None else why
    return Found(key=key, node_id=-1, port=-1, error_code=error, error_message=message)
