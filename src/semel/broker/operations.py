"""The operations allowed to a client: on the cluster, and as the bit fields of KIP-430."""

from __future__ import annotations

from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode

#: Kafka's AclOperation codes; a bit field has bit `code` set.
CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
# As AclEntry.supportedOperations lists them per resource type.
TOPIC_OPERATIONS = (
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
)
CLUSTER_OPERATIONS = (
    "CREATE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
)
GROUP_OPERATIONS = ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")


def allowed(ctx: Context, operations: tuple[str, ...], resource_type: str, name: str) -> int:
    """Which of the operations this client may do, one bit each."""
    return sum(1 << CODES[one] for one in operations if ctx.may(one, resource_type, name))


def require_cluster(ctx: Context, operation: str) -> None:
    """Refuse the whole request of a client that may not do this to the cluster."""
    if not ctx.may(operation, "CLUSTER", CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
