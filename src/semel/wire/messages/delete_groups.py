"""DeleteGroups (API 42): deletes empty groups and their offsets.

Versions. 1: a throttled answer comes at once. 2: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, string


class DeleteGroupsRequest(Message, api_key=42, versions="0-2", flexible="2+"):
    groups_names: list[str] = array(string)


class DeleteGroupsResponse(Message, api_key=42, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[DeleteGroupsResponse.DeletableGroupResult] = array("DeletableGroupResult")

    class DeletableGroupResult(Struct):
        group_id: str = string()
        error_code: int = int16()
