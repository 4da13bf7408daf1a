"""ShareFetch (API key 78, versions 1-2): records for a member of a share group (KIP-932).

Who may:   anyone.
Answers:   UNSUPPORTED_VERSION, as a Kafka does whose feature `share.version` is 0.
Versions:  2 how records are acquired.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

API_KEY = 78
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: ShareFetchRequest, version: int) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
