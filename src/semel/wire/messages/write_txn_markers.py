"""WriteTxnMarkers (API 27): a coordinator writes commit or abort markers into partitions.

Versions. 1: flexible, the oldest left. 2: the transaction version, which decides how strictly
epochs are compared (KIP-1228).
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int8, int16, int32, int64, string


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible="1+"):
    markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = array("WritableTxnMarker")

    class WritableTxnMarker(Struct):
        producer_id: int = int64()
        producer_epoch: int = int16()
        transaction_result: bool = boolean()
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = array(
            "WritableTxnMarkerTopic"
        )
        coordinator_epoch: int = int32()
        transaction_version: int = int8(versions="2+", ignorable=True)

    class WritableTxnMarkerTopic(Struct):
        name: str = string()
        partition_indexes: list[int] = array(int32)


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible="1+"):
    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = array(
        "WritableTxnMarkerResult"
    )

    class WritableTxnMarkerResult(Struct):
        producer_id: int = int64()
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = array(
            "WritableTxnMarkerTopicResult"
        )

    class WritableTxnMarkerTopicResult(Struct):
        name: str = string()
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = array(
            "WritableTxnMarkerPartitionResult"
        )

    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int = int32()
        error_code: int = int16()
