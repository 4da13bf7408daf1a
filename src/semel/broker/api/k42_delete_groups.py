"""DeleteGroups: forget groups without members, and their offsets.

Who may: DELETE on each GROUP. Answers when the tombstones are durable. Versions 0-2.
Not here: what goes with a group: `core/groups/admin`.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import settled
from semel.core.groups.commands import DeleteGroup
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

API_KEY = 42
VERSIONS = ADVERTISED[API_KEY]


async def handle(ctx: Context, request: DeleteGroupsRequest, version: int) -> DeleteGroupsResponse:
    response = DeleteGroupsResponse()
    for group_id in dict.fromkeys(request.groups_names):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if ctx.may("DELETE", "GROUP", group_id):
            error = (await settled(ctx.groups.submit(group_id, DeleteGroup(group_id)))).error
        response.results.append(
            DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)
        )
    return response
