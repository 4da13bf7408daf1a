"""JoinGroup (API 11): a member enters a classic group, or its next generation.

Versions. 1: rebalance timeout. 2: throttle time. 3: a throttled answer comes at once. 4: a member
without an id is given one and told to come again. 5: static members. 6: flexible. 7: the answer
says the protocol type. 8: a reason for joining. 9: the answer can tell the leader to skip the
assignment.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, boolean, int16, int32, string


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+"):
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(-1, versions="1+", ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(None, versions="5+", nullable="0+")
    protocol_type: str = string()
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = array("JoinGroupRequestProtocol")
    reason: str | None = string(None, versions="8+", nullable="0+", ignorable=True)

    class JoinGroupRequestProtocol(Struct):
        name: str = string()
        metadata: bytes = binary()


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(-1)
    protocol_type: str | None = string(None, versions="7+", nullable="0+", ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(versions="9+")
    member_id: str = string()
    members: list[JoinGroupResponse.JoinGroupResponseMember] = array("JoinGroupResponseMember")

    class JoinGroupResponseMember(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(None, versions="5+", nullable="0+", ignorable=True)
        metadata: bytes = binary()
