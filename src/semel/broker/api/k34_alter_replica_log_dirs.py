"""AlterReplicaLogDirs (API key 34, versions 1-2): move replicas to another data directory.

Who may:   ALTER on the Cluster.
Answers:   for each partition: there is one data directory, so a replica is in it already, or the
           directory is not there (ReplicaManager.alterReplicaLogDirs).
Versions:  2 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)

API_KEY = 34
VERSIONS = ADVERTISED[API_KEY]

Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
Partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


def handle(
    ctx: Context, request: AlterReplicaLogDirsRequest, version: int
) -> AlterReplicaLogDirsResponse:
    require_cluster(ctx, "ALTER")
    wanted: dict[str, dict[int, str]] = {}  # of a partition named twice, the last path counts
    for directory in request.dirs:
        for topic in directory.topics:
            paths = wanted.setdefault(topic.name, {})
            paths.update(dict.fromkeys(topic.partitions, directory.path))
    return AlterReplicaLogDirsResponse(
        results=[
            Topic(
                topic_name=name,
                partitions=[
                    Partition(partition_index=index, error_code=_outcome(ctx, name, index, path))
                    for index, path in paths.items()
                ],
            )
            for name, paths in wanted.items()
        ]
    )


def _outcome(ctx: Context, topic: str, index: int, path: str) -> ErrorCode:
    if path != str(ctx.broker.data):  # as DescribeLogDirs tells it
        return ErrorCode.LOG_DIR_NOT_FOUND
    if ctx.partitions.find(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE
