"""A member of a classic group over a raw socket: it waits for nothing but the broker."""

import socket
import time
import uuid

from tests.support.conversations.raw_client import RawClient

from semel.wire.errors import ErrorCode
from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from semel.wire.messages.leave_group import LeaveGroupRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.messages.sync_group import SyncGroupRequest
from semel.wire.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

COMMIT_VERSION = 9


def new_group(client: RawClient) -> str:
    """The name of a group that nobody has used, once its coordinator is there."""
    group = f"bench-{uuid.uuid4()}"
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    while client.ask(find, 4).coordinators[0].error_code:
        time.sleep(0.05)
    # Asked for offsets as well: a coordinator that has been found may be loading still.
    while fetch_offset(client, group, "any") in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ):
        time.sleep(0.05)
    return group


class RawMember:
    def __init__(self, client: RawClient, group: str, topic: str) -> None:
        self.client, self.group, self.topic = client, group, topic
        self.member_id, self.generation = "", -1
        self.partitions: list[int] = []

    def join(self) -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name="range", metadata=subscription(self.topic)
                )
            ],
        )
        answer: JoinGroupResponse = self.client.ask(request, 9)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return self.join()
        assert answer.error_code == 0, ErrorCode(answer.error_code).name
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, members: list[str], partition_count: int) -> ErrorCode:
        """The leader names all members; each gets every n-th partition."""
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=assignment(self.topic, partition_count, number, len(members)),
                )
                for number, member_id in enumerate(members)
            ],
        )
        answer = self.client.ask(request, 5)
        if answer.error_code == 0:
            assigned, _ = ConsumerProtocolAssignment.decode(answer.assignment, 2, 1)
            self.partitions = assigned.assigned_partitions[0].partitions
        return ErrorCode(answer.error_code)

    def enter(self, partition_count: int) -> bool:
        """One round of joining; whether it was not broken off by the next."""
        joined = self.join()
        members = [member.member_id for member in joined.members]  # only the leader is told
        return self.sync(members, partition_count) is ErrorCode.NONE

    def read_first_record(self) -> None:
        fetch_offset(self.client, self.group, self.topic)
        partition = FetchRequest.FetchPartition(
            partition=self.partitions[0], fetch_offset=0, partition_max_bytes=1_000_000
        )
        topic = FetchRequest.FetchTopic(topic=self.topic, partitions=[partition])
        answer = self.client.ask(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic]), 12)
        assert len(answer.responses[0].partitions[0].records), "no record"

    def leave(self) -> None:
        member = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        self.client.ask(LeaveGroupRequest(group_id=self.group, members=[member]), 5)


def fetch_offset(client: RawClient, group: str, topic: str) -> int:
    """Ask for a partition's committed offset, as a consumer does first; the group's error."""
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    one = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[wanted])
    error: int = client.ask(OffsetFetchRequest(groups=[one]), 9).groups[0].error_code
    return error


class RawCommits:
    """The same OffsetCommit over and over, encoded once; answers are compared with the first.

    The consumer is in no generation: it assigns its partitions itself.
    """

    def __init__(self, bootstrap: str, topic: str, in_flight: int) -> None:
        with RawClient(bootstrap) as client:
            request = _commit_request(new_group(client), topic)
        header = RequestHeader(request.API_KEY, COMMIT_VERSION, 1, "raw")
        frame = bytes(encode_request(header, request))
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._stream = self._socket.makefile("rb")
        self._socket.sendall(frame)
        answer = self._stream.read(int.from_bytes(self._stream.read(4), "big"))
        _, response = decode_response(answer, request.API_KEY, COMMIT_VERSION)
        assert response.topics[0].partitions[0].error_code == 0
        self._burst = frame * in_flight
        self._answers = (len(answer).to_bytes(4, "big") + answer) * in_flight

    def burst(self) -> None:
        self._socket.sendall(self._burst)
        assert self._stream.read(len(self._answers)) == self._answers, "a commit failed"


def _commit_request(group: str, topic: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    entry = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    return OffsetCommitRequest(group_id=group, topics=[entry])


def subscription(topic: str) -> bytes:
    out = bytearray(b"\0\1")
    ConsumerProtocolSubscription(topics=[topic]).encode(out, 1)
    return bytes(out)


def assignment(topic: str, partition_count: int, number: int, group_size: int) -> bytes:
    """Every n-th partition."""
    out = bytearray(b"\0\1")
    partitions = list(range(number, partition_count, group_size))
    entry = ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=partitions)
    ConsumerProtocolAssignment(assigned_partitions=[entry]).encode(out, 1)
    return bytes(out)
