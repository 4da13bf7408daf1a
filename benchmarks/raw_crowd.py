"""A whole group on one thread: raw sockets, requests encoded beforehand, one selector.

So many members on threads of their own would measure how Python switches between them. Here a
member is a generator that yields what it sends (or how long it pauses) and is given the answer. The
parts of a request that only the broker knows are put in where a place was kept for them.
"""

import heapq
import selectors
import socket
import struct
import time
import uuid
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any, Protocol

from benchmarks.raw_group import assignment, subscription
from semel.wire.errors import ErrorCode
from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from semel.wire.messages.heartbeat import HeartbeatRequest
from semel.wire.messages.join_group import JoinGroupRequest
from semel.wire.messages.leave_group import LeaveGroupRequest
from semel.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from semel.wire.records.consumer_protocol import ConsumerProtocolAssignment
from semel.wire.schema import Message

VERSIONS = {11: 9, 12: 4, 13: 5, 14: 5, 68: 1}
PAUSE_S = 0.01  # between heartbeats: how soon a member hears that it must do something
CLIENT_ID = "raw"
MEMBER_ID = f"{CLIENT_ID}-{uuid.uuid4()}".encode()  # the place of one: brokers give ids like this
GENERATION = 0x5E_6E_7A_7E
LENGTH = struct.Struct(">i")
# Behind correlation id, tags and throttle time; in JoinGroup, the generation comes next.
ERROR_AND_NEXT = struct.Struct(">9xhi")
ERROR = struct.Struct(">9xh")

Life = Generator[bytes | float, bytes, None]


class Member(Protocol):
    def settle(self) -> Life: ...


class Crowd:
    """Connections that stay; each group that settles over them is a new one."""

    def __init__(self, bootstrap: str, size: int) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.connections = [Connection(host, int(port)) for _ in range(size)]

    def settle(self, members: Sequence[Member]) -> float:
        """Run everybody at once until all are through; the seconds it took."""
        began = time.perf_counter()
        pauses: list[tuple[float, int, Connection]] = []
        with selectors.DefaultSelector() as selector:
            for connection, member in zip(self.connections, members, strict=True):
                connection.life = member.settle()
                selector.register(connection.socket, selectors.EVENT_READ, connection)
                connection.socket.sendall(next(connection.life))  # type: ignore[arg-type]
            left = len(members)
            while left:
                timeout = max(pauses[0][0] - time.perf_counter(), 0) if pauses else 30
                ready = [key.data for key, _ in selector.select(timeout)]
                while pauses and pauses[0][0] <= time.perf_counter():
                    ready.append(heapq.heappop(pauses)[2])
                assert ready, "the broker is silent"
                for connection in ready:
                    try:
                        pause = connection.go_on()
                    except StopIteration:
                        left -= 1
                        continue
                    if pause:
                        until = time.perf_counter() + pause
                        heapq.heappush(pauses, (until, id(connection), connection))
        return time.perf_counter() - began

    def tell(self, requests: list[bytes]) -> None:
        """One after another over one connection; answers are not looked at."""
        connection = self.connections[0].socket
        for request in requests:
            connection.sendall(request)
            (size,) = LENGTH.unpack(connection.recv(4, socket.MSG_WAITALL))
            connection.recv(size, socket.MSG_WAITALL)


class Connection:
    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.life: Life
        self._pausing = False
        self._received = b""

    def go_on(self) -> float:
        """One step of the member's life, if its answer is complete; how long it pauses then."""
        if self._pausing:
            self._pausing = False
            step = next(self.life)
        else:
            self._received += self.socket.recv(1 << 16)
            assert self._received, "the broker closed the connection"
            if len(self._received) < 4 + LENGTH.unpack_from(self._received)[0]:
                return 0
            answer, self._received = self._received[4:], b""
            step = self.life.send(answer)
        if isinstance(step, float):
            self._pausing = True
            return step
        self.socket.sendall(step)
        return 0


class ClassicGroup:
    """What the members of one classic group share: the requests, and which generation has all."""

    PROTOCOL = "classic"

    def __init__(self, group: str, topic: str, partition_count: int, size: int) -> None:
        self.group, self.topic = group, topic
        self.partition_count, self.size = partition_count, size
        self.complete_generation = -1
        self.members = [ClassicMember(self) for _ in range(size)]
        self.first_join = self._join("")
        self.join = self._join(MEMBER_ID.decode())
        self.sync = self._sync()
        self.heartbeat = _request(
            HeartbeatRequest(group_id=group, generation_id=GENERATION, member_id=MEMBER_ID.decode())
        )

    def _join(self, member_id: str) -> bytes:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name="range", metadata=subscription(self.topic)
        )
        return _request(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[protocol],
            )
        )

    def _sync(self, members: Sequence[str] = ()) -> bytes:
        return _request(
            SyncGroupRequest(
                group_id=self.group,
                generation_id=GENERATION,
                member_id=MEMBER_ID.decode(),
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=member_id,
                        assignment=_share(self.topic, self.partition_count, number, len(members)),
                    )
                    for number, member_id in enumerate(members)
                ],
            )
        )

    def sync_of(self, joined: bytes, generation: int) -> bytes:
        """Only the leader is told who the members are: then it brings everybody's share."""
        if joined.endswith(b"\1\0"):  # no members, no tags
            return self.sync
        _, answer = decode_response(joined, JoinGroupRequest.API_KEY, 9)
        if len(answer.members) == self.size:
            self.complete_generation = generation
        return self._sync([member.member_id for member in answer.members])

    def leave(self) -> list[bytes]:
        """All in one request."""
        identity = LeaveGroupRequest.MemberIdentity
        leaving = [identity(member_id=member.member_id.decode()) for member in self.members]
        return [_request(LeaveGroupRequest(group_id=self.group, members=leaving))]

    def owned(self) -> list[int]:
        """All partitions that somebody was given."""
        return sorted(p for member in self.members for p in member.owned())


class ClassicMember:
    def __init__(self, group: ClassicGroup) -> None:
        self.group = group
        self.member_id = b""
        self.assigned = b""

    def settle(self) -> Life:
        """Join until the leader has shared out the partitions among all."""
        group = self.group
        _, answer = decode_response((yield group.first_join), JoinGroupRequest.API_KEY, 9)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.member_id = answer.member_id.encode()
        assert len(self.member_id) == len(MEMBER_ID)
        join = group.join.replace(MEMBER_ID, self.member_id)
        while True:
            joined = yield join
            error, generation = ERROR_AND_NEXT.unpack_from(joined)
            assert error == 0, ErrorCode(error).name
            self.assigned = yield self._filled(group.sync_of(joined, generation), generation)
            (error,) = ERROR.unpack_from(self.assigned)
            if error == 0 and generation == group.complete_generation:
                return
            heartbeat = self._filled(group.heartbeat, generation)
            while error == 0:
                yield PAUSE_S
                (error,) = ERROR.unpack_from((yield heartbeat))

    def _filled(self, request: bytes, generation: int) -> bytes:
        return request.replace(MEMBER_ID, self.member_id).replace(
            LENGTH.pack(GENERATION), LENGTH.pack(generation)
        )

    def owned(self) -> list[int]:
        answer: SyncGroupResponse = decode_response(self.assigned, SyncGroupRequest.API_KEY, 5)[1]
        assigned, _ = ConsumerProtocolAssignment.decode(answer.assignment, 2, 1)
        return assigned.assigned_partitions[0].partitions


class ConsumerGroup:
    """What the members of one KIP-848 group share: when is everybody where it should be?"""

    PROTOCOL = "KIP-848"

    def __init__(self, group: str, topic: str, partition_count: int, size: int) -> None:
        self.group, self.topic = group, topic
        self.partition_count, self.size = partition_count, size
        self.members = [ConsumerMember(self) for _ in range(size)]

    @property
    def is_settled(self) -> bool:
        share = self.partition_count // self.size
        return all(len(member.partitions) == share for member in self.members)

    def leave(self) -> list[bytes]:
        return [member.heartbeat(member_epoch=-1) for member in self.members]

    def owned(self) -> list[int]:
        return sorted(p for member in self.members for p in member.partitions)


class ConsumerMember:
    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.member_id = str(uuid.uuid4())
        self.partitions: list[int] = []
        self._topics: list[Any] = []

    def heartbeat(self, **fields: Any) -> bytes:
        return _request(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group.group, member_id=self.member_id, **fields
            )
        )

    def settle(self) -> Life:
        """Heartbeats, and what was given or taken confirmed, until all have their share."""
        request = self.heartbeat(
            member_epoch=0,
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=[self.group.topic],
            topic_partitions=[],
        )
        while not self.group.is_settled:
            _, answer = decode_response((yield request), 68, 1)
            assert answer.error_code == 0, ErrorCode(answer.error_code).name
            if answer.assignment is None:
                request = self.heartbeat(member_epoch=answer.member_epoch)
                yield PAUSE_S
            else:
                self._take(answer.assignment)
                request = self.heartbeat(
                    member_epoch=answer.member_epoch, topic_partitions=self._topics
                )

    def _take(self, assignment: ConsumerGroupHeartbeatResponse.Assignment) -> None:
        entry = ConsumerGroupHeartbeatRequest.TopicPartitions
        self._topics = [
            entry(topic_id=t.topic_id, partitions=t.partitions) for t in assignment.topic_partitions
        ]
        self.partitions = [p for topic in assignment.topic_partitions for p in topic.partitions]


@cache
def _share(topic: str, partition_count: int, number: int, group_size: int) -> bytes:
    return assignment(topic, partition_count, number, group_size)


def _request(request: Message) -> bytes:
    header = RequestHeader(request.API_KEY, VERSIONS[request.API_KEY], 1, CLIENT_ID)
    return bytes(encode_request(header, request))
