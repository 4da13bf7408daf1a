"""DeleteAcls (API key 31, versions 1-3): remove the access rules that match filters.

Who may:   ALTER on the Cluster.
Answers:   SECURITY_DISABLED for each filter: this broker has no authorizer, so there are no rules.
Versions:  2 flexible, 3 users as resources.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

API_KEY = 31
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
    require_cluster(ctx, "ALTER")
    raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
