"""Heartbeat (API 12): a member of a classic group says that it lives.

Versions. 1: throttle time. 2: a throttled answer comes at once. 3: static members. 4: flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, int16, int32, string


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+"):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(None, versions="3+", nullable="0+")


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
