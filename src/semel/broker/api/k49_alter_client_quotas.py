"""AlterClientQuotas (API key 49, versions 0-1): set and remove quotas.

Who may:   ALTER_CONFIGS on the Cluster.
Answers:   when durable, each entity on its own. What is set counts from the next request.
Versions:  1 flexible.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from semel.broker.access.quotas import check_change
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)

API_KEY = 49
VERSIONS = ADVERTISED[API_KEY]

Asked = AlterClientQuotasRequest.EntryData
Result = AlterClientQuotasResponse.EntryData
Part = AlterClientQuotasResponse.EntityData
#: Entity types and names.
Entity = tuple[tuple[str, str | None], ...]


async def handle(
    ctx: Context, request: AlterClientQuotasRequest, version: int
) -> AlterClientQuotasResponse:
    if not ctx.may("ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME):
        return AlterClientQuotasResponse(entries=[_denied(entry) for entry in request.entries])
    ctx.broker.throttling  # noqa: B018  (it must be there to hear of the first quota)
    return await ctx.catalog.change(partial(_decide, request))


def _decide(request: AlterClientQuotasRequest, draft: CatalogDraft) -> AlterClientQuotasResponse:
    times = Counter(_entity(entry) for entry in request.entries)
    wanted = None if request.validate_only else draft
    results = {_entity(entry): _result(entry, times, wanted) for entry in request.entries}
    return AlterClientQuotasResponse(entries=list(results.values()))


def _denied(entry: Asked) -> Result:
    return Result(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        error_message=ErrorCode.CLUSTER_AUTHORIZATION_FAILED.meaning,
        entity=[
            Part(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in entry.entity
        ],
    )


def _entity(entry: Asked) -> Entity:
    """Of a type named twice, the last name counts."""
    return tuple({part.entity_type: part.entity_name for part in entry.entity}.items())


def _result(entry: Asked, times: Counter[Entity], draft: CatalogDraft | None) -> Result:
    entity = _entity(entry)
    result = Result(
        error_message=None,
        entity=[Part(entity_type=kind, entity_name=name) for kind, name in entity],
    )
    try:
        _change(entry, entity, times[entity], draft)
    except ApiError as problem:
        result.error_code, result.error_message = problem.code, problem.message
    return result


def _change(entry: Asked, entity: Entity, times: int, draft: CatalogDraft | None) -> None:
    quotas = {change.key: None if change.remove else change.value for change in entry.ops}
    if times > 1 or len(quotas) < len(entry.ops):
        told = ", ".join(f"{kind}={name}" for kind, name in entity)
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Ignoring duplicate entity ClientQuotaEntity(entries={{{told}}})",
        )
    check_change(dict(entity), quotas)
    if draft is not None:
        for key, value in quotas.items():
            draft.set_quota(frozenset(entity), key, value)
