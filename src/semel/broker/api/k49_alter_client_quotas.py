"""AlterClientQuotas (API key 49, versions 0-1): set and remove quotas.

Who may:   ALTER_CONFIGS on the Cluster.
Answers:   each entity on its own. There are no quotas, so removing one changes nothing; setting one
           is refused, for nobody here would obey it.
Versions:  1 flexible.
"""

from __future__ import annotations

from collections import Counter

from semel.broker.access.quotas import check_change
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
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


def handle(
    ctx: Context, request: AlterClientQuotasRequest, version: int
) -> AlterClientQuotasResponse:
    require_cluster(ctx, "ALTER_CONFIGS")
    times = Counter(_entity(entry) for entry in request.entries)
    results = {_entity(entry): _result(entry, times) for entry in request.entries}
    return AlterClientQuotasResponse(entries=list(results.values()))


def _entity(entry: Asked) -> Entity:
    """Of a type named twice, the last name counts."""
    return tuple({part.entity_type: part.entity_name for part in entry.entity}.items())


def _result(entry: Asked, times: Counter[Entity]) -> Result:
    entity = _entity(entry)
    result = Result(
        error_message=None,
        entity=[Part(entity_type=kind, entity_name=name) for kind, name in entity],
    )
    try:
        _change(entry, entity, times[entity])
    except ApiError as problem:
        result.error_code, result.error_message = problem.code, problem.message
    return result


def _change(entry: Asked, entity: Entity, times: int) -> None:
    quotas = {change.key: None if change.remove else change.value for change in entry.ops}
    if times > 1 or len(quotas) < len(entry.ops):
        told = ", ".join(f"{kind}={name}" for kind, name in entity)
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Ignoring duplicate entity ClientQuotaEntity(entries={{{told}}})",
        )
    check_change(dict(entity), quotas)
    if any(value is not None for value in quotas.values()):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "This broker has no quotas.")
