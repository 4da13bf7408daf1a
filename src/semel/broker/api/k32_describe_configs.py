"""DescribeConfigs (API key 32, versions 1-4): the settings of topics, brokers and groups.

Who may:   DESCRIBE_CONFIGS on the Topic, the Group, or the Cluster (for brokers).
Answers:   every setting with its value and where it comes from; on request all places that give
           it one (synonyms, the one in force first) and, from version 3, its type and
           documentation.
Versions:  3 types and documentation, 4 flexible.
Not here:  loggers and client metrics, which this broker does not have as resources.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.settings.resources import ConfigEntry, Resource
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

API_KEY = 32
VERSIONS = ADVERTISED[API_KEY]

Result = DescribeConfigsResponse.DescribeConfigsResult


def handle(ctx: Context, request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_describe(ctx, request, asked) for asked in request.resources]
    )


def _describe(
    ctx: Context,
    request: DescribeConfigsRequest,
    asked: DescribeConfigsRequest.DescribeConfigsResource,
) -> Result:
    result = Result(
        resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None
    )
    try:
        resource = Resource(ctx, asked.resource_type, asked.resource_name)
        resource.authorize("DESCRIBE_CONFIGS")
        resource.check_exists()
        # Kafka takes an empty list of names for all of them, too.
        entries = resource.describe(asked.configuration_keys or None)
        result.configs = [_told(request, entry) for entry in entries]
    except ApiError as problem:
        result.error_code, result.error_message = problem.code, problem.message
    return result


def _told(
    request: DescribeConfigsRequest, entry: ConfigEntry
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    sources = entry.sources if request.include_synonyms else ()
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.setting.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.setting.is_sensitive,
        synonyms=[
            DescribeConfigsResponse.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in sources
        ],
        config_type=entry.setting.kind,
        documentation=entry.setting.doc if request.include_documentation else None,
    )
