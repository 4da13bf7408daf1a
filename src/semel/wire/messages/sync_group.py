"""SyncGroup (API 14): a classic group's leader hands in the assignment, members get their part.

Versions. 1: throttle time. 2: a throttled answer comes at once. 3: static members. 4: flexible.
5: protocol type and name, checked by the broker and told to the member.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, int16, int32, string


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible="4+"):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(None, versions="3+", nullable="0+")
    protocol_type: str | None = string(None, versions="5+", nullable="0+", ignorable=True)
    protocol_name: str | None = string(None, versions="5+", nullable="0+", ignorable=True)
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = array(
        "SyncGroupRequestAssignment"
    )

    class SyncGroupRequestAssignment(Struct):
        member_id: str = string()
        assignment: bytes = binary()


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(None, versions="5+", nullable="0+", ignorable=True)
    protocol_name: str | None = string(None, versions="5+", nullable="0+", ignorable=True)
    assignment: bytes = binary()
