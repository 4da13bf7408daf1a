"""AlterReplicaLogDirs (API 34): move replicas to another data directory of the same broker.

Versions. 2: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, string


class AlterReplicaLogDirsRequest(Message, api_key=34, versions="1-2", flexible="2+"):
    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = array("AlterReplicaLogDir")

    class AlterReplicaLogDir(Struct):
        path: str = string()
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = array(
            "AlterReplicaLogDirTopic"
        )

    class AlterReplicaLogDirTopic(Struct):
        name: str = string()
        partitions: list[int] = array(int32)


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="1-2", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = array(
        "AlterReplicaLogDirTopicResult"
    )

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = string()
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = array(
            "AlterReplicaLogDirPartitionResult"
        )

    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int = int32()
        error_code: int = int16()
