"""StreamsGroupHeartbeat (API key 88, version 0): join and leave a streams group (KIP-1071).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose feature `streams.version` is 0.
Versions:  0 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

API_KEY = 88
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: StreamsGroupHeartbeatRequest, version: int
) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=None
    )
