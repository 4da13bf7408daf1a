"""DescribeLogDirs (API 35): data directories and what partitions take up in them.

Versions. 1: the oldest left. 2: flexible. 3: an error for the whole answer. 4: total and usable
bytes. 5: whether a directory is cordoned.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible="2+"):
    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = array(
        "DescribableLogDirTopic", nullable="0+"
    )

    class DescribableLogDirTopic(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible="2+"):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = array("DescribeLogDirsResult")

    class DescribeLogDirsResult(Struct):
        error_code: int = int16()
        log_dir: str = string()
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = array("DescribeLogDirsTopic")
        total_bytes: int = int64(-1, versions="4+", ignorable=True)
        usable_bytes: int = int64(-1, versions="4+", ignorable=True)
        is_cordoned: bool = boolean(versions="5+", ignorable=True)

    class DescribeLogDirsTopic(Struct):
        name: str = string()
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = array(
            "DescribeLogDirsPartition"
        )

    class DescribeLogDirsPartition(Struct):
        partition_index: int = int32()
        partition_size: int = int64()
        offset_lag: int = int64()
        is_future_key: bool = boolean()
