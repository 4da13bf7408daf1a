"""CreateDelegationToken (API 38): a token with which others may act as its owner.

Versions. 2: flexible. 3: a token for somebody else.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, int16, int32, int64, string


class CreateDelegationTokenRequest(Message, api_key=38, versions="1-3", flexible="2+"):
    owner_principal_type: str | None = string(versions="3+", nullable="3+")
    owner_principal_name: str | None = string(versions="3+", nullable="3+")
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = array("CreatableRenewers")
    max_lifetime_ms: int = int64()

    class CreatableRenewers(Struct):
        principal_type: str = string()
        principal_name: str = string()


class CreateDelegationTokenResponse(Message, api_key=38, versions="1-3", flexible="2+"):
    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    throttle_time_ms: int = int32()
