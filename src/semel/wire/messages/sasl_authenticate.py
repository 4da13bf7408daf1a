"""SaslAuthenticate (API 36): carries the tokens of a SASL exchange.

Versions. 1: how long the session is valid, so that the client can renew it. 2: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, binary, int16, int64, string


class SaslAuthenticateRequest(Message, api_key=36, versions="0-2", flexible="2+"):
    auth_bytes: bytes = binary()


class SaslAuthenticateResponse(Message, api_key=36, versions="0-2", flexible="2+"):
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = binary()
    session_lifetime_ms: int = int64(versions="1+", ignorable=True)
