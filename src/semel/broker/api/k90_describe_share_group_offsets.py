"""DescribeShareGroupOffsets (API key 90, versions 0-1): where share groups begin to read (KIP-932).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION for each group, as a Kafka does whose feature `share.version` is 0.
Versions:  1 lag.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

API_KEY = 90
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: DescribeShareGroupOffsetsRequest, version: int
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup(
                group_id=group.group_id,
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                error_message=None,
            )
            for group in request.groups
        ]
    )
