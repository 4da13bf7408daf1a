"""DescribeShareGroupOffsets (API 90): where share groups begin to read.

Versions. 0: flexible. 1: lag. Null topics means all.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions="0-1", flexible="0+"):
    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = array(
        "DescribeShareGroupOffsetsRequestGroup"
    )

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str = string()
        topics: (
            list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
        ) = array("DescribeShareGroupOffsetsRequestTopic", nullable="0+")

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = string()
        partitions: list[int] = array(int32)


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = array(
        "DescribeShareGroupOffsetsResponseGroup"
    )

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str = string()
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = (
            array("DescribeShareGroupOffsetsResponseTopic")
        )
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = string()
        topic_id: UUID = uuid()
        partitions: list[
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
        ] = array("DescribeShareGroupOffsetsResponsePartition")

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = int32()
        start_offset: int = int64()
        leader_epoch: int = int32()
        lag: int = int64(-1, versions="1+", ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(None, nullable="0+")
