"""DescribeAcls (API key 29, versions 1-3): the access rules that match a filter.

Who may:   DESCRIBE on the Cluster.
Answers:   SECURITY_DISABLED: this broker has no authorizer, so there are no rules.
Versions:  2 flexible, 3 users as resources.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

API_KEY = 29
VERSIONS = ADVERTISED[API_KEY]


def handle(ctx: Context, request: DescribeAclsRequest, version: int) -> DescribeAclsResponse:
    require_cluster(ctx, "DESCRIBE")
    raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
