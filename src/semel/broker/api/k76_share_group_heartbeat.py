"""ShareGroupHeartbeat (API key 76, version 1): join, stay in and leave a share group (KIP-932).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose feature `share.version` is 0.
Versions:  1 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

API_KEY = 76
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: ShareGroupHeartbeatRequest, version: int
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, member_id=None, error_message=None
    )
