"""ElectLeaders (API key 43, versions 0-2): make the preferred replica a partition's leader again.

Who may:   ALTER on the Cluster.
Answers:   ELECTION_NOT_NEEDED: every partition has one replica, which leads it. Asked for all
           partitions, Kafka names the topics and leaves out what needs no election.
Versions:  1 unclean elections and an error for the whole, 2 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

API_KEY = 43
VERSIONS = ADVERTISED[API_KEY]

ELECTION_TYPES = PREFERRED, UNCLEAN = 0, 1

Topic = ElectLeadersResponse.ReplicaElectionResult
Partition = ElectLeadersResponse.PartitionResult


def handle(ctx: Context, request: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
    require_cluster(ctx, "ALTER")
    kind = request.election_type
    if kind not in ELECTION_TYPES:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
    if request.topic_partitions is None:
        results = [Topic(topic=name) for name in ctx.catalog.topics]
    else:
        results = [
            Topic(
                topic=asked.topic,
                partition_result=[_result(ctx, asked.topic, one) for one in asked.partitions],
            )
            for asked in request.topic_partitions
        ]
    return ElectLeadersResponse(replica_election_results=results)


def _result(ctx: Context, name: str, index: int) -> Partition:
    topic = ctx.catalog.topics.get(name)
    if topic is None:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif not 0 <= index < topic.partition_count:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    else:
        code = ErrorCode.ELECTION_NOT_NEEDED
        message = "Leader election not needed for topic partition."
    return Partition(partition_id=index, error_code=code, error_message=message)
