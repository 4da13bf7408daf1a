"""DeleteAcls (API 31): removes the access rules that match filters.

Versions. 1: pattern types (literal, prefixed). 2: flexible. 3: users as resources.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, string


class DeleteAclsRequest(Message, api_key=31, versions="1-3", flexible="2+"):
    filters: list[DeleteAclsRequest.DeleteAclsFilter] = array("DeleteAclsFilter")

    class DeleteAclsFilter(Struct):
        resource_type_filter: int = int8()
        resource_name_filter: str | None = string(nullable="0+")
        pattern_type_filter: int = int8(3)
        principal_filter: str | None = string(nullable="0+")
        host_filter: str | None = string(nullable="0+")
        operation: int = int8()
        permission_type: int = int8()


class DeleteAclsResponse(Message, api_key=31, versions="1-3", flexible="2+"):
    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = array(
        "DeleteAclsFilterResult"
    )

    class DeleteAclsFilterResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = array(
            "DeleteAclsMatchingAcl"
        )

    class DeleteAclsMatchingAcl(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8(3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()
