"""SaslAuthenticate (API key 36, versions 0-2): the tokens of a SASL exchange.

Who may:   anyone.
Answers:   what the mechanism says next; a failure after a while, and the connection is closed
           behind it. ILLEGAL_SASL_STATE where nobody is asked who they are.
Versions:  1 lifetime of the session, 2 flexible.
"""

from __future__ import annotations

from semel.broker.access.sessions import SaslSession
from semel.broker.api import Answer
from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

API_KEY = 36
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: SaslAuthenticateRequest, version: int) -> Answer:
    session: SaslSession | None = ctx.connection.session
    if session is not None:
        return session.authenticate(request, version)
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
