"""IncrementalAlterConfigs (API key 44, versions 0-1): change settings one by one.

Who may:   ALTER_CONFIGS on the Topic, the Group, or the Cluster (for brokers).
Answers:   when durable, each resource on its own, all of its changes or none.
Versions:  1 flexible.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from functools import partial

from semel.broker.catalog.draft import CatalogDraft
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.settings.definitions import Setting, SettingType
from semel.broker.settings.resources import Resource, ResourceType, alter_each
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

API_KEY = 44
VERSIONS = ADVERTISED[API_KEY]

Asked = IncrementalAlterConfigsRequest.AlterConfigsResource
Change = IncrementalAlterConfigsRequest.AlterableConfig
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


class Operation(IntEnum):
    """Kafka's AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


async def handle(
    ctx: Context, request: IncrementalAlterConfigsRequest, version: int
) -> IncrementalAlterConfigsResponse:
    return await ctx.catalog.change(partial(_decide, ctx, request))


def _decide(
    ctx: Context, request: IncrementalAlterConfigsRequest, draft: CatalogDraft
) -> IncrementalAlterConfigsResponse:
    def alter(asked: Asked) -> None:
        _alter(ctx, asked, None if request.validate_only else draft)

    return IncrementalAlterConfigsResponse(responses=alter_each(request.resources, Result, alter))


def _alter(ctx: Context, asked: Asked, draft: CatalogDraft | None) -> None:
    resource = Resource(ctx, asked.resource_type, asked.resource_name)
    resource.authorize("ALTER_CONFIGS")
    resource.check_exists()
    _check_changes(asked.configs)
    resource.check_alterable(change.name for change in asked.configs)
    configs: dict[str, str | None] = dict(resource.own)
    present = {entry.setting.name: entry.value for entry in resource.describe(None)}
    for change in asked.configs:
        setting = resource.table.get(change.name)
        _apply(configs, change, setting, present.get(change.name), resource.type)
    resource.replace(configs, draft)


def _check_changes(changes: list[Change]) -> None:
    times = Counter(change.name for change in changes)
    repeated = [name for name, count in times.items() if count > 1]
    if repeated:
        names = ", ".join(repeated)
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {names}")
    missing = [
        change.name
        for change in changes
        if change.value is None and change.config_operation != Operation.DELETE
    ]
    if missing:
        names = ", ".join(missing)
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {names}")
    for change in changes:
        if change.config_operation not in Operation._value2member_map_:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Unknown operation type {change.config_operation}"
            )


def _apply(
    configs: dict[str, str | None],
    change: Change,
    setting: Setting | None,
    present: str | None,
    kind: ResourceType,
) -> None:
    operation = Operation(change.config_operation)
    if operation is Operation.SET:
        configs[change.name] = change.value
    elif operation is Operation.DELETE:
        configs.pop(change.name, None)
    elif setting is None:
        configs[change.name] = change.value  # refused as unknown together with the rest
    else:
        _check_is_list(operation, setting, kind)
        given = change.value or ""
        entries = _added if operation is Operation.APPEND else _subtracted
        configs[change.name] = entries(setting, present, given)


def _check_is_list(operation: Operation, setting: Setting, kind: ResourceType) -> None:
    """Brokers' settings are changed by ConfigAdminManager first, the others by the controller."""
    name = setting.name
    if setting.kind is not SettingType.LIST:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Config value {operation.name.lower()} is not allowed for config key: {name}"
            if kind is ResourceType.BROKER
            else f"Can't {operation.name} to key {name} because its type is not LIST.",
        )


def _added(setting: Setting, present: str | None, given: str) -> str:
    had = list(setting.parse(present or ""))
    return ",".join(had + [entry for entry in setting.parse(given) if entry not in had])


def _subtracted(setting: Setting, present: str | None, given: str) -> str:
    gone = setting.parse(given)
    return ",".join(entry for entry in setting.parse(present or "") if entry not in gone)
