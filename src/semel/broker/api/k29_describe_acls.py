"""DescribeAcls (API key 29, versions 1-3): the access rules that match a filter.

Who may:   DESCRIBE on the Cluster.
Answers:   the rules, by the resources that they name; SECURITY_DISABLED without an authorizer.
Versions:  2 flexible, 3 users as resources.
"""

from __future__ import annotations

from semel.broker.access.acls import entry_fields, filter_of, pattern_fields, require_authorizer
from semel.broker.context import Context
from semel.broker.operations import require_cluster
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

API_KEY = 29
VERSIONS = ADVERTISED[API_KEY]

Resource = DescribeAclsResponse.DescribeAclsResource
Acl = DescribeAclsResponse.AclDescription


def handle(ctx: Context, request: DescribeAclsRequest, version: int) -> DescribeAclsResponse:
    require_cluster(ctx, "DESCRIBE")
    require_authorizer(ctx, "No Authorizer is configured on the broker")
    resources: dict[tuple[str, str, str], Resource] = {}
    for rule in ctx.catalog.rules.matching(filter_of(request)):
        resource = resources.setdefault(rule[:3], Resource(**pattern_fields(rule)))
        resource.acls.append(Acl(**entry_fields(rule)))
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))
