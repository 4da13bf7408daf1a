"""SaslHandshake (API key 17, versions 0-1): which SASL mechanism a client wants to use.

Who may:   anyone.
Answers:   ILLEGAL_SASL_STATE and no mechanisms: listeners here are PLAINTEXT, on which nobody is
           asked who they are (KafkaApis.handleSaslHandshakeRequest).
Versions:  1 tokens follow inside SaslAuthenticate.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

API_KEY = 17
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
