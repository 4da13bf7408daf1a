"""ListGroups: the groups this broker coordinates.

Who may: DESCRIBE on the CLUSTER sees all, DESCRIBE on a GROUP sees that one. Answers at once.
Versions 0-5: 4 filter by state, 5 by type. Not here: the filters: `core/groups/admin`.
"""

from __future__ import annotations

from semel.broker.context import CLUSTER_NAME, Context
from semel.wire.messages import ADVERTISED
from semel.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

API_KEY = 16
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: ListGroupsRequest, version: int) -> ListGroupsResponse:
    error, groups = ctx.groups.list(request.states_filter, request.types_filter)
    sees_all = ctx.may_quietly("DESCRIBE", "CLUSTER", CLUSTER_NAME)
    return ListGroupsResponse(
        error_code=error,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.type,
            )
            for group in groups
            if sees_all or ctx.may_quietly("DESCRIBE", "GROUP", group.group_id)
        ],
    )
