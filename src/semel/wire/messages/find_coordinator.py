"""FindCoordinator (API 10): which broker coordinates a group, a transactional id or a share group.

Versions. 0: groups only. 1: key type, throttle time, error message. 2: a throttled answer comes
at once. 3: flexible. 4: many keys at once. 5: TRANSACTION_ABORTABLE is possible. 6: share groups.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Message, api_key=10, versions="0-6", flexible="3+"):
    key: str = string(versions="0-3")
    key_type: int = int8(versions="1+")
    coordinator_keys: list[str] = array(string, versions="4+")


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="0+", ignorable=True)
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[FindCoordinatorResponse.Coordinator] = array("Coordinator", versions="4+")

    class Coordinator(Struct):
        key: str = string()
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
