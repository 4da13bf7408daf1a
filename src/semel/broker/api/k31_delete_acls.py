"""DeleteAcls (API key 31, versions 1-3): remove the access rules that match filters.

Who may:   ALTER on the Cluster.
Answers:   when durable, for each filter the rules that it removed; one that several filters match
           is told for each. SECURITY_DISABLED without an authorizer.
Versions:  2 flexible, 3 users as resources.
"""

from __future__ import annotations

from functools import partial

from semel.broker.access.acls import entry_fields, filter_of, pattern_fields, require_authorizer
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.core.access.rules import Rule
from semel.wire.messages import ADVERTISED
from semel.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

API_KEY = 31
VERSIONS = ADVERTISED[API_KEY]

Result = DeleteAclsResponse.DeleteAclsFilterResult
Matching = DeleteAclsResponse.DeleteAclsMatchingAcl


async def handle(ctx: Context, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
    require_cluster(ctx, "ALTER")
    require_authorizer(ctx, "No Authorizer is configured.")
    return await ctx.catalog.change(partial(_decide, ctx, request))


def _decide(ctx: Context, request: DeleteAclsRequest, draft: CatalogDraft) -> DeleteAclsResponse:
    removed: dict[Rule, None] = {}
    results = []
    for asked in request.filters:
        result = Result(error_message=None)
        results.append(result)
        try:
            found = ctx.catalog.rules.matching(filter_of(asked))
        except ApiError as problem:
            result.error_code, result.error_message = problem.code, problem.message
            continue
        removed.update(dict.fromkeys(found))
        result.matching_acls = [
            Matching(error_message=None, **pattern_fields(rule), **entry_fields(rule))
            for rule in found
        ]
    draft.change_rules(removed=removed)
    return DeleteAclsResponse(filter_results=results)
