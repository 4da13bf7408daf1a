"""ListOffsets (API 2): offsets of partitions by time, or their first and last ones.

Versions. 1: one offset and its timestamp. 2: isolation level, throttle time. 3: a throttled
answer comes at once. 4: leader epochs. 5: OFFSET_NOT_AVAILABLE is possible. 6: flexible. 7: the
largest timestamp can be asked for (-3). 8: the first local offset (-4). 9: the last tiered one
(-5). 10: a time limit, for tiered storage. 11: the first offset waiting for its upload (-6).
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, int64, string


class ListOffsetsRequest(Message, api_key=2, versions="1-11", flexible="6+"):
    replica_id: int = int32()
    isolation_level: int = int8(versions="2+")
    topics: list[ListOffsetsRequest.ListOffsetsTopic] = array("ListOffsetsTopic")
    timeout_ms: int = int32(versions="10+", ignorable=True)

    class ListOffsetsTopic(Struct):
        name: str = string()
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = array("ListOffsetsPartition")

    class ListOffsetsPartition(Struct):
        partition_index: int = int32()
        current_leader_epoch: int = int32(-1, versions="4+", ignorable=True)
        timestamp: int = int64()


class ListOffsetsResponse(Message, api_key=2, versions="1-11", flexible="6+"):
    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = array("ListOffsetsTopicResponse")

    class ListOffsetsTopicResponse(Struct):
        name: str = string()
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = array(
            "ListOffsetsPartitionResponse"
        )

    class ListOffsetsPartitionResponse(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        timestamp: int = int64(-1)
        offset: int = int64(-1)
        leader_epoch: int = int32(-1, versions="4+")
