"""DescribeLogDirs (API key 35, versions 1-5): the size of partitions, and the room left.

Who may:   DESCRIBE on the Cluster; without it, the list is empty (and from version 3 says so).
Answers:   for the one data directory, with the partitions asked for (null: all).
Versions:  2 flexible, 3 an error for the whole, 4 size of the volume, 5 cordoned directories
           (none).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from semel.broker.context import CLUSTER_NAME, Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

API_KEY = 35
VERSIONS = ADVERTISED[API_KEY]

Topic = DescribeLogDirsResponse.DescribeLogDirsTopic
Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


def handle(ctx: Context, request: DescribeLogDirsRequest, version: int) -> DescribeLogDirsResponse:
    if not ctx.may("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    volume = os.statvfs(ctx.broker.data)
    result = DescribeLogDirsResponse.DescribeLogDirsResult(
        log_dir=str(ctx.broker.data),
        topics=[topic for topic in _topics(ctx, request) if topic.partitions],
        total_bytes=volume.f_blocks * volume.f_frsize,
        usable_bytes=volume.f_bavail * volume.f_frsize,
    )
    return DescribeLogDirsResponse(results=[result])


def _topics(ctx: Context, request: DescribeLogDirsRequest) -> Iterator[Topic]:
    if request.topics is None:
        for name, topic in ctx.catalog.topics.items():
            yield Topic(name=name, partitions=_sizes(ctx, name, range(topic.partition_count)))
    else:
        for asked in request.topics:
            yield Topic(name=asked.topic, partitions=_sizes(ctx, asked.topic, asked.partitions))


def _sizes(ctx: Context, topic: str, indexes: range | list[int]) -> list[Partition]:
    found = ((index, ctx.partitions.find(topic, index)) for index in indexes)
    return [
        Partition(
            partition_index=index,
            partition_size=sum(segment.size for segment in partition.log.segments()),
        )
        for index, partition in found
        if partition is not None
    ]
