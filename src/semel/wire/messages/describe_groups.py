"""DescribeGroups (API 15): state and members of classic groups.

Versions. 1: throttle time. 2: a throttled answer comes at once. 3: authorized operations on
demand. 4: static members. 5: flexible. 6: GROUP_ID_NOT_FOUND and a message for groups that do not
exist, which used to look dead.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, binary, boolean, int16, int32, string


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+"):
    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean(versions="3+")


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    groups: list[DescribeGroupsResponse.DescribedGroup] = array("DescribedGroup")

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(None, versions="6+", nullable="0+")
        group_id: str = string()
        group_state: str = string()
        protocol_type: str = string()
        protocol_data: str = string()
        members: list[DescribeGroupsResponse.DescribedGroupMember] = array("DescribedGroupMember")
        authorized_operations: int = int32(-(2**31), versions="3+")

    class DescribedGroupMember(Struct):
        member_id: str = string()
        group_instance_id: str | None = string(None, versions="4+", nullable="0+", ignorable=True)
        client_id: str = string()
        client_host: str = string()
        member_metadata: bytes = binary()
        member_assignment: bytes = binary()
