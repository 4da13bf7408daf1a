"""ExpireDelegationToken (API 40): a delegation token expires sooner, or at once.

Versions. 2: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, binary, int16, int32, int64


class ExpireDelegationTokenRequest(Message, api_key=40, versions="1-2", flexible="2+"):
    hmac: bytes = binary()
    expiry_time_period_ms: int = int64()


class ExpireDelegationTokenResponse(Message, api_key=40, versions="1-2", flexible="2+"):
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
