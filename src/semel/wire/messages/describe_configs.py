"""DescribeConfigs (API 32): configs of topics, brokers and groups, with their sources.

Versions. 1: sources and synonyms. 2: a throttled answer comes at once. 3: types and
documentation. 4: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible="4+"):
    resources: list[DescribeConfigsRequest.DescribeConfigsResource] = array(
        "DescribeConfigsResource"
    )
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(versions="3+")

    class DescribeConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configuration_keys: list[str] | None = array(string, nullable="0+")


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible="4+"):
    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResponse.DescribeConfigsResult] = array("DescribeConfigsResult")

    class DescribeConfigsResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = array(
            "DescribeConfigsResourceResult"
        )

    class DescribeConfigsResourceResult(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")
        read_only: bool = boolean()
        config_source: int = int8(-1)
        is_sensitive: bool = boolean()
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = array(
            "DescribeConfigsSynonym"
        )
        config_type: int = int8(versions="3+", ignorable=True)
        documentation: str | None = string(versions="3+", nullable="0+", ignorable=True)

    class DescribeConfigsSynonym(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")
        source: int = int8()
