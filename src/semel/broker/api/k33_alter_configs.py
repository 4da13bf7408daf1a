"""AlterConfigs (API key 33, versions 0-2): put a new set of settings in place of the old.

Who may:   ALTER_CONFIGS on the Topic, the Group, or the Cluster (for brokers).
Answers:   when durable, each resource on its own. Kafka's newer form is IncrementalAlterConfigs
           (44).
Versions:  2 flexible.
"""

from __future__ import annotations

from collections import Counter

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.settings.resources import Resource
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

API_KEY = 33
VERSIONS = ADVERTISED[API_KEY]

Asked = AlterConfigsRequest.AlterConfigsResource
Result = AlterConfigsResponse.AlterConfigsResourceResponse


def handle(ctx: Context, request: AlterConfigsRequest, version: int) -> AlterConfigsResponse:
    times = Counter((asked.resource_type, asked.resource_name) for asked in request.resources)
    results = {}
    for asked in request.resources:
        key = asked.resource_type, asked.resource_name
        result = results[key] = Result(
            resource_type=asked.resource_type, resource_name=asked.resource_name, error_message=None
        )
        try:
            _alter(ctx, asked, times[key], request.validate_only)
        except ApiError as problem:
            result.error_code, result.error_message = problem.code, problem.message
    return AlterConfigsResponse(responses=list(results.values()))


def _alter(ctx: Context, asked: Asked, times: int, validate_only: bool) -> None:
    if times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    resource = Resource(ctx, asked.resource_type, asked.resource_name)
    resource.authorize("ALTER_CONFIGS")
    resource.check_exists()
    resource.check_alterable(config.name for config in asked.configs)
    resource.replace({config.name: config.value for config in asked.configs}, validate_only)
