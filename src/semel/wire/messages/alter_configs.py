"""AlterConfigs (API 33): replaces all configs of a resource; what is not named is reset.

Versions. 1: a throttled answer comes at once. 2: flexible. Clients should use
IncrementalAlterConfigs.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsRequest.AlterConfigsResource] = array("AlterConfigsResource")
    validate_only: bool = boolean()

    class AlterConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[AlterConfigsRequest.AlterableConfig] = array("AlterableConfig")

    class AlterableConfig(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = array(
        "AlterConfigsResourceResponse"
    )

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()
