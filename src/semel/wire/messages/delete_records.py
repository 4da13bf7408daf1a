"""DeleteRecords (API 21): moves the start of partitions' logs forward.

Versions. 1: a throttled answer comes at once. 2: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+"):
    topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = array("DeleteRecordsTopic")
    timeout_ms: int = int32()

    class DeleteRecordsTopic(Struct):
        name: str = string()
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = array(
            "DeleteRecordsPartition"
        )

    class DeleteRecordsPartition(Struct):
        partition_index: int = int32()
        offset: int = int64()


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = array("DeleteRecordsTopicResult")

    class DeleteRecordsTopicResult(Struct):
        name: str = string()
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = array(
            "DeleteRecordsPartitionResult"
        )

    class DeleteRecordsPartitionResult(Struct):
        partition_index: int = int32()
        low_watermark: int = int64()
        error_code: int = int16()
