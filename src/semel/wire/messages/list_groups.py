"""ListGroups (API 16): the groups that this broker coordinates.

Versions. 1: throttle time. 2: a throttled answer comes at once. 3: flexible. 4: states, in the
answer and as a filter. 5: types (classic, consumer, ...), likewise.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, string


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible="3+"):
    states_filter: list[str] = array(string, versions="4+")
    types_filter: list[str] = array(string, versions="5+")


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListGroupsResponse.ListedGroup] = array("ListedGroup")

    class ListedGroup(Struct):
        group_id: str = string()
        protocol_type: str = string()
        group_state: str = string(versions="4+", ignorable=True)
        group_type: str = string(versions="5+", ignorable=True)
