"""ListConfigResources (API 74): the names of resources that have configs.

Versions. 0, flexible: client metrics only, under the name ListClientMetricsResources. 1: any
resource types (KIP-1142).
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    resource_types: list[int] = array(int8, versions="1+")


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ListConfigResourcesResponse.ConfigResource] = array("ConfigResource")

    class ConfigResource(Struct):
        resource_name: str = string()
        resource_type: int = int8(16, versions="1+", ignorable=True)
