"""DescribeClientQuotas (API 48): quotas of users, client ids and addresses.

Versions. 1: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, float64, int8, int16, int32, string


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+"):
    components: list[DescribeClientQuotasRequest.ComponentData] = array("ComponentData")
    strict: bool = boolean()

    class ComponentData(Struct):
        entity_type: str = string()
        match_type: int = int8()
        match: str | None = string(nullable="0+")


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[DescribeClientQuotasResponse.EntryData] | None = array("EntryData", nullable="0+")

    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData] = array("EntityData")
        values: list[DescribeClientQuotasResponse.ValueData] = array("ValueData")

    class EntityData(Struct):
        entity_type: str = string()
        entity_name: str | None = string(nullable="0+")

    class ValueData(Struct):
        key: str = string()
        value: float = float64()
