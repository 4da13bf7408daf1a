"""SaslHandshake (API 17): a client says which SASL mechanism it will use.

Versions. 0: raw SASL tokens follow. 1: tokens follow inside SaslAuthenticate. Never flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, array, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1"):
    mechanism: str = string()


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    error_code: int = int16()
    mechanisms: list[str] = array(string)
