"""CreateAcls (API key 30, versions 1-3): add access rules.

Who may:   ALTER on the Cluster.
Answers:   when durable, each rule on its own; one that is there already is fine. SECURITY_DISABLED
           without an authorizer, which alone would obey them.
Versions:  2 flexible, 3 users as resources.
"""

from __future__ import annotations

from functools import partial

from semel.broker.access.acls import require_authorizer, rule_of
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.core.access.rules import Rule
from semel.wire.messages import ADVERTISED
from semel.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse

API_KEY = 30
VERSIONS = ADVERTISED[API_KEY]

Result = CreateAclsResponse.AclCreationResult


async def handle(ctx: Context, request: CreateAclsRequest, version: int) -> CreateAclsResponse:
    require_cluster(ctx, "ALTER")
    require_authorizer(ctx, "No Authorizer is configured.")
    return await ctx.catalog.change(partial(_decide, ctx, request))


def _decide(ctx: Context, request: CreateAclsRequest, draft: CatalogDraft) -> CreateAclsResponse:
    added: dict[Rule, None] = {}
    results = []
    for asked in request.creations:
        result = Result(error_message=None)
        results.append(result)
        try:
            rule = rule_of(asked)
        except ApiError as problem:
            result.error_code, result.error_message = problem.code, problem.message
        else:
            if rule not in ctx.catalog.rules:
                added[rule] = None
    draft.change_rules(added=added)
    return CreateAclsResponse(results=results)
