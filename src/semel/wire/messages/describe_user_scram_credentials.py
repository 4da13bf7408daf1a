"""DescribeUserScramCredentials (API 50): which users have SCRAM credentials, and which.

Versions. 0, flexible. Null or no users means all.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions="0", flexible="0+"):
    users: list[DescribeUserScramCredentialsRequest.UserName] | None = array(
        "UserName", nullable="0+"
    )

    class UserName(Struct):
        name: str = string()


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = array(
        "DescribeUserScramCredentialsResult"
    )

    class DescribeUserScramCredentialsResult(Struct):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = array(
            "CredentialInfo"
        )

    class CredentialInfo(Struct):
        mechanism: int = int8()
        iterations: int = int32()
