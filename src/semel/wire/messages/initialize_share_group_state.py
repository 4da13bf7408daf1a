"""InitializeShareGroupState (API 83): a share group begins to read a partition. Between brokers.

Versions. 0, flexible.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[InitializeShareGroupStateRequest.InitializeStateData] = array(
        "InitializeStateData"
    )

    class InitializeStateData(Struct):
        topic_id: UUID = uuid()
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Struct):
        partition: int = int32()
        state_epoch: int = int32()
        start_offset: int = int64()


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    results: list[InitializeShareGroupStateResponse.InitializeStateResult] = array(
        "InitializeStateResult"
    )

    class InitializeStateResult(Struct):
        topic_id: UUID = uuid()
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = array(
            "PartitionResult"
        )

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
