"""ListPartitionReassignments (API key 46, version 0): which partitions move to other brokers.

Who may:   DESCRIBE on the Cluster.
Answers:   none: there is one broker. Topics that are not there are left out, too, as in Kafka.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.operations import require_cluster
from semel.wire.messages import ADVERTISED
from semel.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

API_KEY = 46
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: ListPartitionReassignmentsRequest, version: int
) -> ListPartitionReassignmentsResponse:
    require_cluster(ctx, "DESCRIBE")
    return ListPartitionReassignmentsResponse(error_message=None)
