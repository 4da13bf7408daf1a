"""ListConfigResources (API key 74, versions 0-1): which resources have configs.

Who may:   DESCRIBE_CONFIGS on the Cluster.
Answers:   topics, brokers and groups with configs; version 0 asks for client metrics alone: there
           are none.
Versions:  1 resource types (none given: all).
"""

from __future__ import annotations

from semel.broker.catalog import catalog as catalogs
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.broker.settings.resources import ResourceType
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

API_KEY = 74
VERSIONS = ADVERTISED[API_KEY]

BROKER_LOGGER, CLIENT_METRICS = 8, 16
#: The types Kafka lists; two of them have no resources here.
LISTABLE = {*ResourceType, BROKER_LOGGER, CLIENT_METRICS}


def handle(
    ctx: Context, request: ListConfigResourcesRequest, version: int
) -> ListConfigResourcesResponse:
    if not ctx.may("DESCRIBE_CONFIGS", "CLUSTER", CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = set(request.resource_types) or LISTABLE
    if version == 0:
        wanted = {CLIENT_METRICS}
    if not wanted <= LISTABLE:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(wanted)
            for name in _names(ctx, kind)
        ]
    )


def _names(ctx: Context, kind: int) -> list[str]:
    catalog = ctx.catalog
    if kind == ResourceType.TOPIC:
        return list(catalog.topics)
    if kind == ResourceType.BROKER:
        return [str(catalog.node_id)]
    if kind == ResourceType.GROUP:
        return [name for type_, name in catalog.configs if type_ == catalogs.GROUP]
    return []
