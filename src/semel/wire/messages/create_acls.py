"""CreateAcls (API 30): adds access rules.

Versions. 1: pattern types (literal, prefixed). 2: flexible. 3: users as resources.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, string


class CreateAclsRequest(Message, api_key=30, versions="1-3", flexible="2+"):
    creations: list[CreateAclsRequest.AclCreation] = array("AclCreation")

    class AclCreation(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        resource_pattern_type: int = int8(3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[CreateAclsResponse.AclCreationResult] = array("AclCreationResult")

    class AclCreationResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
