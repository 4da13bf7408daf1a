"""DeleteShareGroupState (API 86): a share group reads a partition no longer. Between brokers.

Versions. 0, flexible.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[DeleteShareGroupStateRequest.DeleteStateData] = array("DeleteStateData")

    class DeleteStateData(Struct):
        topic_id: UUID = uuid()
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Struct):
        partition: int = int32()


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible="0+"):
    results: list[DeleteShareGroupStateResponse.DeleteStateResult] = array("DeleteStateResult")

    class DeleteStateResult(Struct):
        topic_id: UUID = uuid()
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
