"""Produce (API 0): a producer appends record batches to partitions.

Versions. 3: record batches of format 2, with a transactional id. 4: KAFKA_STORAGE_ERROR is
possible. 5: the answer tells the log's start offset. 7: zstd is allowed. 8: the answer names the
records at fault. 9: flexible. 10: the answer names the new leader (KIP-951). 11:
TRANSACTION_ABORTABLE is possible. 12: adds its partitions to the transaction by itself (KIP-890).
13: topics by id.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import (
    Message,
    Records,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    records,
    string,
    uuid,
)


class ProduceRequest(Message, api_key=0, versions="3-13", flexible="9+"):
    transactional_id: str | None = string(None, nullable="0+")
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[ProduceRequest.TopicProduceData] = array("TopicProduceData")

    class TopicProduceData(Struct):
        name: str = string(versions="0-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)
        partition_data: list[ProduceRequest.PartitionProduceData] = array("PartitionProduceData")

    class PartitionProduceData(Struct):
        index: int = int32()
        records: Records = records(nullable="0+")


class ProduceResponse(Message, api_key=0, versions="3-13", flexible="9+"):
    responses: list[ProduceResponse.TopicProduceResponse] = array("TopicProduceResponse")
    throttle_time_ms: int = int32()
    node_endpoints: list[ProduceResponse.NodeEndpoint] = array(
        "NodeEndpoint", versions="10+", tag=0
    )

    class TopicProduceResponse(Struct):
        name: str = string(versions="0-12", ignorable=True)
        topic_id: UUID = uuid(versions="13+", ignorable=True)
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = array(
            "PartitionProduceResponse"
        )

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(None, nullable="0+")

    class PartitionProduceResponse(Struct):
        index: int = int32()
        error_code: int = int16()
        base_offset: int = int64()
        log_append_time_ms: int = int64(-1)
        log_start_offset: int = int64(-1, versions="5+", ignorable=True)
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = array(
            "BatchIndexAndErrorMessage", versions="8+", ignorable=True
        )
        error_message: str | None = string(None, versions="8+", nullable="0+", ignorable=True)
        current_leader: ProduceResponse.LeaderIdAndEpoch = nested(
            "LeaderIdAndEpoch", versions="10+", tag=0
        )

    class BatchIndexAndErrorMessage(Struct):
        batch_index: int = int32()
        batch_index_error_message: str | None = string(None, nullable="0+")

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32(-1)
        leader_epoch: int = int32(-1)
