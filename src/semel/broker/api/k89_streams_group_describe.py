"""StreamsGroupDescribe (API key 89, version 0): the members of streams groups (KIP-1071).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION for each group, as a Kafka does whose feature `streams.version` is 0.
Versions:  0 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

API_KEY = 89
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: StreamsGroupDescribeRequest, version: int
) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        groups=[
            StreamsGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=None
            )
            for group_id in request.group_ids
        ]
    )
