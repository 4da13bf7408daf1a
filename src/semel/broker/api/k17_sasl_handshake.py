"""SaslHandshake (API key 17, versions 0-1): which SASL mechanism a client wants to use.

Who may:   anyone.
Answers:   the mechanisms of the listener. ILLEGAL_SASL_STATE and none where nobody is asked who
           they are, or has been asked just now (KafkaApis.handleSaslHandshakeRequest).
Versions:  1 tokens follow inside SaslAuthenticate.
Not here:  how far a connection has come (broker/access/sessions).
"""

from __future__ import annotations

from semel.broker.access.sessions import SaslSession
from semel.broker.api import Answer
from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

API_KEY = 17
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: SaslHandshakeRequest, version: int) -> Answer:
    session: SaslSession | None = ctx.connection.session
    if session is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    return session.handshake(request, version)
