"""ReadShareGroupStateSummary (API 87): a share group's progress in short. Between brokers.

Versions. 0: flexible. 1: how many deliveries are complete.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class ReadShareGroupStateSummaryRequest(Message, api_key=87, versions="0-1", flexible="0+"):
    group_id: str = string()
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = array(
        "ReadStateSummaryData"
    )

    class ReadStateSummaryData(Struct):
        topic_id: UUID = uuid()
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = array("PartitionData")

    class PartitionData(Struct):
        partition: int = int32()
        leader_epoch: int = int32()


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions="0-1", flexible="0+"):
    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = array(
        "ReadStateSummaryResult"
    )

    class ReadStateSummaryResult(Struct):
        topic_id: UUID = uuid()
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = array(
            "PartitionResult"
        )

    class PartitionResult(Struct):
        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        state_epoch: int = int32()
        leader_epoch: int = int32()
        start_offset: int = int64()
        delivery_complete_count: int = int32(-1, versions="1+", ignorable=True)
