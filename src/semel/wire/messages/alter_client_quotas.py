"""AlterClientQuotas (API 49): sets and removes quotas.

Versions. 1: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, float64, int16, int32, string


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+"):
    entries: list[AlterClientQuotasRequest.EntryData] = array("EntryData")
    validate_only: bool = boolean()

    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData] = array("EntityData")
        ops: list[AlterClientQuotasRequest.OpData] = array("OpData")

    class EntityData(Struct):
        entity_type: str = string()
        entity_name: str | None = string(nullable="0+")

    class OpData(Struct):
        key: str = string()
        value: float = float64()
        remove: bool = boolean()


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()
    entries: list[AlterClientQuotasResponse.EntryData] = array("EntryData")

    class EntryData(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
        entity: list[AlterClientQuotasResponse.EntityData] = array("EntityData")

    class EntityData(Struct):
        entity_type: str = string()
        entity_name: str | None = string(nullable="0+")
