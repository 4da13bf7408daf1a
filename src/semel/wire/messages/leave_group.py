"""LeaveGroup (API 13): members leave a classic group.

Versions. 1: throttle time. 2: a throttled answer comes at once. 3: many members at once, static
ones by instance id. 4: flexible. 5: a reason for leaving.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, string


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+"):
    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[LeaveGroupRequest.MemberIdentity] = array("MemberIdentity", versions="3+")

    class MemberIdentity(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(None, nullable="0+")
        reason: str | None = string(None, versions="5+", nullable="0+", ignorable=True)


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    members: list[LeaveGroupResponse.MemberResponse] = array("MemberResponse", versions="3+")

    class MemberResponse(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(nullable="0+")
        error_code: int = int16()
