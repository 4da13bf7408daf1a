"""DescribeQuorum (API key 55, versions 0-2): the state of the metadata log's quorum: this one node.

Who may:   DESCRIBE on the Cluster.
Answers:   for partition 0 of __cluster_metadata; the high watermark counts the catalog's records.
Versions:  1 fetch times, 2 listeners, directory ids and error messages.
"""

from __future__ import annotations

from semel.broker.catalog.topics import METADATA_TOPIC
from semel.broker.context import CLUSTER_NAME, Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

API_KEY = 55
VERSIONS = ADVERTISED[API_KEY]

Partition = DescribeQuorumResponse.PartitionData


def handle(ctx: Context, request: DescribeQuorumRequest, version: int) -> DescribeQuorumResponse:
    if not ctx.may("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return DescribeQuorumResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            error_message=ErrorCode.CLUSTER_AUTHORIZATION_FAILED.meaning,
        )
    host, port = ctx.broker.advertised(ctx.connection)
    response = DescribeQuorumResponse(
        error_message=None,
        topics=[
            DescribeQuorumResponse.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    _partition(ctx, topic.topic_name, partition.partition_index)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
    if version >= 2:
        listener = DescribeQuorumResponse.Listener(
            name=ctx.connection.listener, host=host, port=port
        )
        node = DescribeQuorumResponse.Node(node_id=ctx.catalog.node_id, listeners=[listener])
        response.nodes = [node]
    return response


def _partition(ctx: Context, topic: str, index: int) -> Partition:
    if (topic, index) != (METADATA_TOPIC, 0):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Partition(partition_index=index, error_code=code, error_message=None)
    catalog = ctx.catalog
    now = ctx.now_ms()
    voter = DescribeQuorumResponse.ReplicaState(
        replica_id=catalog.node_id,
        log_end_offset=catalog.offset,
        last_fetch_timestamp=now,
        last_caught_up_timestamp=now,
    )
    return Partition(
        partition_index=index,
        error_message=None,
        leader_id=catalog.node_id,
        leader_epoch=catalog.broker_epoch,
        high_watermark=catalog.offset,
        current_voters=[voter],
    )
