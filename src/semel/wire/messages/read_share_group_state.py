"""ReadShareGroupState (API 84): how far a share group is in a partition. Between brokers.

Versions. 0, flexible.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible="0+"):
    group_id: str = string()
    topics: list[ReadShareGroupStateRequest.ReadStateData] = array("ReadStateData")

    class ReadStateData(Struct):
        topic_id: UUID = uuid()
        partitions: list[ReadShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Struct):
        partition: int = int32()
        leader_epoch: int = int32()


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    results: list[ReadShareGroupStateResponse.ReadStateResult] = array("ReadStateResult")

    class ReadStateResult(Struct):
        topic_id: UUID = uuid()
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        state_epoch: int = int32()
        start_offset: int = int64()
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = array("StateBatch")

    class StateBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()
