"""DescribeDelegationToken (API 41): the delegation tokens of some owners.

Versions. 2: flexible. 3: who asked for the token. Null owners means all.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, int16, int32, int64, string


class DescribeDelegationTokenRequest(Message, api_key=41, versions="1-3", flexible="2+"):
    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = array(
        "DescribeDelegationTokenOwner", nullable="0+"
    )

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = string()
        principal_name: str = string()


class DescribeDelegationTokenResponse(Message, api_key=41, versions="1-3", flexible="2+"):
    error_code: int = int16()
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = array(
        "DescribedDelegationToken"
    )
    throttle_time_ms: int = int32()

    class DescribedDelegationToken(Struct):
        principal_type: str = string()
        principal_name: str = string()
        token_requester_principal_type: str = string(versions="3+")
        token_requester_principal_name: str = string(versions="3+")
        issue_timestamp: int = int64()
        expiry_timestamp: int = int64()
        max_timestamp: int = int64()
        token_id: str = string()
        hmac: bytes = binary()
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = array(
            "DescribedDelegationTokenRenewer"
        )

    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = string()
        principal_name: str = string()
