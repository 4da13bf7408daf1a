"""DescribeProducers (API 61): the producers that a partition's leader knows (KIP-664).

Versions. 0, flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible="0+"):
    topics: list[DescribeProducersRequest.TopicRequest] = array("TopicRequest")

    class TopicRequest(Struct):
        name: str = string()
        partition_indexes: list[int] = array(int32)


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    topics: list[DescribeProducersResponse.TopicResponse] = array("TopicResponse")

    class TopicResponse(Struct):
        name: str = string()
        partitions: list[DescribeProducersResponse.PartitionResponse] = array("PartitionResponse")

    class PartitionResponse(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
        active_producers: list[DescribeProducersResponse.ProducerState] = array("ProducerState")

    class ProducerState(Struct):
        producer_id: int = int64()
        producer_epoch: int = int32()
        last_sequence: int = int32(-1)
        last_timestamp: int = int64(-1)
        coordinator_epoch: int = int32()
        current_txn_start_offset: int = int64(-1)
