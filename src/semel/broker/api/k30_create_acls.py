"""CreateAcls (API key 30, versions 1-3): add access rules.

Who may:   ALTER on the Cluster.
Answers:   SECURITY_DISABLED for each rule: this broker has no authorizer that would obey it.
Versions:  2 flexible, 3 users as resources.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse

API_KEY = 30
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: CreateAclsRequest, version: int) -> CreateAclsResponse:
    require_cluster(ctx, "ALTER")
    raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
