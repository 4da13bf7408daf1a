"""Short words for asking a broker about groups, in raw requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.groups.subscriptions import write_subscription

from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.join_group import JoinGroupRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.messages.sync_group import SyncGroupRequest


class Speaker:
    """One connection to the broker that speaks the group APIs."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask

    async def create(self, name: str, partitions: int = 2) -> Any:
        wanted = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        response = await self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)
        assert response.topics[0].error_code == 0
        return response.topics[0].topic_id

    def join_request(self, group: str = "g", member: str = "", **fields: Any) -> JoinGroupRequest:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name="range", metadata=write_subscription(["t"])
        )
        given = {
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [protocol],
        }
        return JoinGroupRequest(group_id=group, member_id=member, **(given | fields))

    async def join(self, group: str = "g", version: int = 9, **fields: Any) -> Any:
        """All of KIP-394's two steps; the answer of the last."""
        response = await self.ask(self.join_request(group, **fields), version)
        if response.error_code == 79:  # MEMBER_ID_REQUIRED
            request = self.join_request(group, response.member_id, **fields)
            response = await self.ask(request, version)
        return response

    async def sync(self, joined: Any, group: str = "g", version: int = 5) -> Any:
        """The leader gives each member its own name for an assignment."""
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=m.member_id, assignment=m.member_id.encode()
            )
            for m in joined.members
        ]
        request = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        return await self.ask(request, version)

    async def commit(
        self, offset: int, topic: str = "t", partition: int = 0, version: int = 9, **fields: Any
    ) -> int:
        request = OffsetCommitRequest(group_id=fields.pop("group", "g"), **fields)
        request.topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset
                    )
                ],
            )
        ]
        response = await self.ask(request, version)
        error: int = response.topics[0].partitions[0].error_code
        return error

    async def fetch(
        self, topic: str = "t", partition: int = 0, group: str = "g", **fields: Any
    ) -> Any:
        wanted = OffsetFetchRequest.OffsetFetchRequestTopics(
            name=topic, partition_indexes=[partition]
        )
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[wanted])
        response = await self.ask(OffsetFetchRequest(groups=[asked], **fields), 9)
        return response.groups[0].topics[0].partitions[0]


@pytest.fixture
async def speak(broker: Any, connect: Callable[..., Awaitable[Any]]) -> Speaker:
    return Speaker(await connect(broker))


@pytest.fixture
def parked(until: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Waits until a group has so many members, some of whose joins may be waiting."""

    async def wait(broker: Any, members: int, group: str = "g") -> None:
        groups = broker.groups.shard_of(group).machine.state.groups
        await until(lambda: group in groups and len(groups[group].members) == members)

    return wait


@pytest.fixture
def speak_to(connect: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Speaker]]:
    async def new(broker: Any) -> Speaker:
        return Speaker(await connect(broker))

    return new
