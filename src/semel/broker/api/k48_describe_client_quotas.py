"""DescribeClientQuotas (API key 48, versions 0-1): the quotas that match a filter.

Who may:   DESCRIBE_CONFIGS on the Cluster.
Answers:   at once. A filter that makes no sense is refused.
Versions:  1 flexible.
"""

from __future__ import annotations

from collections.abc import Mapping

from semel.broker.access.quotas import check_filter, matches
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.core.access.quotas import Entity
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

API_KEY = 48
VERSIONS = ADVERTISED[API_KEY]

Entry = DescribeClientQuotasResponse.EntryData


def handle(
    ctx: Context, request: DescribeClientQuotasRequest, version: int
) -> DescribeClientQuotasResponse:
    try:
        require_cluster(ctx, "DESCRIBE_CONFIGS")
        check_filter(request.components)
    except ApiError as problem:
        return DescribeClientQuotasResponse(
            error_code=problem.code, error_message=problem.message, entries=None
        )
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            _entry(entity, quotas)
            for entity, quotas in ctx.catalog.quotas
            if matches(dict(entity), request.components, request.strict)
        ],
    )


def _entry(entity: Entity, quotas: Mapping[str, float]) -> Entry:
    return Entry(
        entity=[
            DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
            for kind, name in sorted(entity, reverse=True)
        ],
        values=[
            DescribeClientQuotasResponse.ValueData(key=key, value=value)
            for key, value in quotas.items()
        ],
    )
