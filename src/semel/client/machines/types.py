"""Small values that all of the client speaks in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from semel.wire.batches import NO_EPOCH, NO_PRODUCER_ID
from semel.wire.errors import ErrorCode, ErrorKind


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """What is committed for a partition: the offset of the next record to read, and a note."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class GroupMetadata(NamedTuple):
    """Who commits offsets (KIP-447): lets the group refuse a member that is no longer one."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class ProducerIdentity(NamedTuple):
    producer_id: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        return self.producer_id >= 0


NO_PRODUCER = ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)


class Node(NamedTuple):
    """A broker's address, as the cluster gives it out."""

    node_id: int
    host: str
    port: int


class Failure(NamedTuple):
    """Why something did not work, and how bad it is for who asked."""

    kind: ErrorKind
    what: str
    code: ErrorCode = ErrorCode.NONE
    why: str = ""  # known better than the code tells
    advice: str = ""

    def __str__(self) -> str:
        code = self.code
        if code is ErrorCode.NONE:
            return self.what
        why, advice = self.why or code.meaning, self.advice or code.advice
        return f"{self.what}: {why} ({code.name}). {advice}"


class Pending:
    """An operation under way: settled once, well or with a failure."""

    __slots__ = ("_callbacks", "failure", "operation", "settled")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.settled = False
        self.failure: Failure | None = None
        self._callbacks: list[Callable[[Pending], object]] = []

    def settle(self, failure: Failure | None = None) -> None:
        if self.settled:
            return
        self.settled = True
        self.failure = failure
        for callback in self._callbacks:
            callback(self)
        self._callbacks.clear()

    def when_settled(self, callback: Callable[[Pending], object]) -> None:
        """Calls `callback(self)` once it is settled; at once if it is."""
        if self.settled:
            callback(self)
        else:
            self._callbacks.append(callback)
