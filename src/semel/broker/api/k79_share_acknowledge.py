"""ShareAcknowledge (API key 79, versions 1-2): what became of a share group's records (KIP-932).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose feature `share.version` is 0.
Versions:  2 acknowledgements that renew.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

API_KEY = 79
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: ShareAcknowledgeRequest, version: int
) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
