"""IncrementalAlterConfigs (API 44): sets, deletes, appends to or subtracts from single configs.

Versions. 1: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class IncrementalAlterConfigsRequest(Message, api_key=44, versions="0-1", flexible="1+"):
    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = array(
        "AlterConfigsResource"
    )
    validate_only: bool = boolean()

    class AlterConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = array("AlterableConfig")

    class AlterableConfig(Struct):
        name: str = string()
        config_operation: int = int8()
        value: str | None = string(nullable="0+")


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = array(
        "AlterConfigsResourceResponse"
    )

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()
