"""WriteShareGroupState (API 85): how far a share group came in a partition. Between brokers.

Versions. 0: flexible. 1: how many deliveries are complete.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int8, int16, int32, int64, string, uuid


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", flexible="0+"):
    group_id: str = string()
    topics: list[WriteShareGroupStateRequest.WriteStateData] = array("WriteStateData")

    class WriteStateData(Struct):
        topic_id: UUID = uuid()
        partitions: list[WriteShareGroupStateRequest.PartitionData] = array("PartitionData")

    class PartitionData(Struct):
        partition: int = int32()
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32(-1, versions="1+", ignorable=True)
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = array("StateBatch")

    class StateBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_state: int = int8()
        delivery_count: int = int16()


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible="0+"):
    results: list[WriteShareGroupStateResponse.WriteStateResult] = array("WriteStateResult")

    class WriteStateResult(Struct):
        topic_id: UUID = uuid()
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = array("PartitionResult")

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
