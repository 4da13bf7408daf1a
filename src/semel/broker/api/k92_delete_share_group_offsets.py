"""DeleteShareGroupOffsets (API key 92, version 0): a share group forgets topics (KIP-932).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose feature `share.version` is 0.
Versions:  0 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

API_KEY = 92
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: DeleteShareGroupOffsetsRequest, version: int
) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="The version of API is not supported.",
    )
