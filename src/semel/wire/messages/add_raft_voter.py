"""AddRaftVoter (API 80): one more controller that votes.

Versions. 0: flexible. 1: whether to wait until it is committed.
"""

from __future__ import annotations

from uuid import UUID

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, string, uint16, uuid


class AddRaftVoterRequest(Message, api_key=80, versions="0-1", flexible="0+"):
    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid()
    listeners: list[AddRaftVoterRequest.Listener] = array("Listener")
    ack_when_committed: bool = boolean(True, versions="1+")

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()


class AddRaftVoterResponse(Message, api_key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
