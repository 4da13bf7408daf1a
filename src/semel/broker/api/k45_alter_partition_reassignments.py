"""AlterPartitionReassignments (API key 45, versions 0-1): move partitions to other brokers.

Who may:   ALTER on the Cluster.
Answers:   for each partition: the only replicas there can be are those it has, so a move to them is
           done at once, one to others is refused, and there is none under way to cancel
           (ReplicationControlManager.alterPartitionReassignments).
Versions:  1 the number of replicas may be kept from changing: it never does here.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

API_KEY = 45
VERSIONS = ADVERTISED[API_KEY]

Asked = AlterPartitionReassignmentsRequest.ReassignablePartition
Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
Partition = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


def handle(
    ctx: Context, request: AlterPartitionReassignmentsRequest, version: int
) -> AlterPartitionReassignmentsResponse:
    require_cluster(ctx, "ALTER")
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            Topic(
                name=topic.name,
                partitions=[_result(ctx, topic.name, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _result(ctx: Context, topic: str, asked: Asked) -> Partition:
    result = Partition(partition_index=asked.partition_index, error_message=None)
    try:
        _check(ctx, topic, asked)
    except ApiError as problem:
        result.error_code, result.error_message = problem.code, problem.message
    return result


def _check(ctx: Context, name: str, asked: Asked) -> None:
    topic = ctx.catalog.topics.get(name)
    index = asked.partition_index
    if topic is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
        )
    if not 0 <= index < topic.partition_count:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}."
        )
    if asked.replicas is None:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    _check_replicas(asked.replicas, ctx.catalog.node_id)


def _check_replicas(replicas: list[int], node_id: int) -> None:
    if not replicas:
        _refuse("an empty replica list.")
    for number, broker in enumerate(sorted(replicas)):
        if broker != node_id:
            _refuse(f"broker {broker}, but no such broker is registered.")
        if number > 0:
            _refuse(f"the broker {broker} more than once.")


def _refuse(what: str) -> None:
    raise ApiError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {what}"
    )
