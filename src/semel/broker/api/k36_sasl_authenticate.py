"""SaslAuthenticate (API key 36, versions 0-2): the tokens of a SASL exchange.

Who may:   anyone.
Answers:   ILLEGAL_SASL_STATE: on a PLAINTEXT listener nobody is asked who they are.
Versions:  1 lifetime of the session, 2 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

API_KEY = 36
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: SaslAuthenticateRequest, version: int
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
