"""AlterShareGroupOffsets (API key 91, version 0): where a share group shall begin (KIP-932).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose feature `share.version` is 0.
Versions:  0 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)

API_KEY = 91
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: AlterShareGroupOffsetsRequest, version: int
) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="The version of API is not supported.",
    )
