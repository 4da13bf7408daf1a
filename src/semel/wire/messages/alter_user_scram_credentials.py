"""AlterUserScramCredentials (API 51): sets and removes SCRAM credentials; passwords travel salted.

Versions. 0, flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, int8, int16, int32, string


class AlterUserScramCredentialsRequest(Message, api_key=51, versions="0", flexible="0+"):
    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = array(
        "ScramCredentialDeletion"
    )
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = array(
        "ScramCredentialUpsertion"
    )

    class ScramCredentialDeletion(Struct):
        name: str = string()
        mechanism: int = int8()

    class ScramCredentialUpsertion(Struct):
        name: str = string()
        mechanism: int = int8()
        iterations: int = int32()
        salt: bytes = binary()
        salted_password: bytes = binary()


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = array(
        "AlterUserScramCredentialsResult"
    )

    class AlterUserScramCredentialsResult(Struct):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
