"""ShareGroupDescribe (API key 77, version 1): the members of share groups (KIP-932).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION for each group, as a Kafka does whose feature `share.version` is 0.
Versions:  1 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

API_KEY = 77
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: ShareGroupDescribeRequest, version: int
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        groups=[
            ShareGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=None
            )
            for group_id in request.group_ids
        ]
    )
