"""AlterConfigs (API key 33, versions 0-2): put a new set of settings in place of the old.

Who may:   ALTER_CONFIGS on the Topic, the Group, or the Cluster (for brokers).
Answers:   when durable, each resource on its own. Kafka's newer form is IncrementalAlterConfigs
           (44).
Versions:  2 flexible.
"""

from __future__ import annotations

from functools import partial

from semel.broker.catalog.draft import CatalogDraft
from semel.broker.context import Context
from semel.broker.settings.resources import Resource, alter_each
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

API_KEY = 33
VERSIONS = ADVERTISED[API_KEY]

Asked = AlterConfigsRequest.AlterConfigsResource
Result = AlterConfigsResponse.AlterConfigsResourceResponse


async def handle(ctx: Context, request: AlterConfigsRequest, version: int) -> AlterConfigsResponse:
    return await ctx.catalog.change(partial(_decide, ctx, request))


def _decide(
    ctx: Context, request: AlterConfigsRequest, draft: CatalogDraft
) -> AlterConfigsResponse:
    def alter(asked: Asked) -> None:
        resource = Resource(ctx, asked.resource_type, asked.resource_name)
        resource.authorize("ALTER_CONFIGS")
        resource.check_exists()
        resource.check_alterable(config.name for config in asked.configs)
        configs = {config.name: config.value for config in asked.configs}
        resource.replace(configs, None if request.validate_only else draft)

    return AlterConfigsResponse(responses=alter_each(request.resources, Result, alter))
