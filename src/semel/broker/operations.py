"""The operations allowed to a client: on the cluster, and as the bit fields of KIP-430."""

from __future__ import annotations

from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.core.access.rules import SUPPORTED_OPERATIONS
from semel.wire.acls import OPERATION_CODES
from semel.wire.errors import ErrorCode


def allowed(ctx: Context, resource_type: str, name: str) -> int:
    """What this client may do with a resource, one bit for each operation's code."""
    return sum(
        1 << OPERATION_CODES[operation]
        for operation in SUPPORTED_OPERATIONS[resource_type]
        if ctx.may_quietly(operation, resource_type, name)
    )


def allowed_on_cluster(ctx: Context) -> int:
    """The same of the cluster: nothing is told to who may not look at it."""
    if not ctx.may("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return 0
    return allowed(ctx, "CLUSTER", CLUSTER_NAME)


def require_cluster(ctx: Context, operation: str) -> None:
    """Refuse the whole request of a client that may not do this to the cluster."""
    if not ctx.may(operation, "CLUSTER", CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
