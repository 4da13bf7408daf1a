"""One handler per request of a transaction: what it asks, of whom, and what every answer means.

A handler builds its message when it is sent (the producer's epoch may have changed since it was
queued) and judges the answer by one table of errors, as Kafka's TransactionManager does:

    coordinator lost              → look it up, send again
    other retriable codes         → wait, send again
    fenced, unauthorised, 48      → FATAL_ERROR
    topic or group not authorised → ABORTABLE_ERROR
    producer id forgotten         → ABORTABLE_ERROR, and a new epoch before the next transaction
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from semel.client.machines.types import (
    Failure,
    GroupMetadata,
    Node,
    OffsetAndMetadata,
    Pending,
    ProducerIdentity,
    TopicPartition,
)
from semel.wire.errors import ErrorCode, ErrorKind
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from semel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from semel.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from semel.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from semel.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from semel.wire.schema import Message

if TYPE_CHECKING:
    from semel.client.machines.transactions.manager import TransactionManager

E = ErrorCode

_LOOK_UP = frozenset({E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE})
_FENCED = frozenset({E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH})
_FORGOTTEN = frozenset({E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_ID_MAPPING})


class Target(Enum):
    """Who is asked. The numbers are FindCoordinator's key types."""

    ANYONE = -1
    GROUP = 0
    TRANSACTION = 1


class Priority(IntEnum):
    """What is sent first when several wait (Kafka's TransactionManager.Priority)."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3
    EPOCH_BUMP = 4


class TxnVerdict(Enum):
    DONE = "done"
    LOOK_UP = "look the coordinator up and send again"
    AGAIN = "send again"
    ABORTABLE = "abortable"
    BUMP = "abortable, and the epoch must change"
    FATAL = "fatal"


def judge(code: ErrorCode, abortable: frozenset[ErrorCode] = frozenset()) -> TxnVerdict:
    """The common table; `abortable` are the codes that are so for this request only."""
    if code is E.NONE:
        return TxnVerdict.DONE
    if code in _LOOK_UP:
        return TxnVerdict.LOOK_UP
    if code.retriable:
        return TxnVerdict.AGAIN
    if code in _FORGOTTEN:
        return TxnVerdict.BUMP
    if code is E.TRANSACTION_ABORTABLE or code in abortable:
        return TxnVerdict.ABORTABLE
    return TxnVerdict.FATAL


class TxnRequestHandler(ABC):
    """A request in the manager's queue. `answered` and `lost` report what became of it."""

    priority: Priority
    target = Target.TRANSACTION
    message_class: type[Message]

    def __init__(self, manager: TransactionManager, pending: Pending) -> None:
        self.manager = manager
        self.pending = pending
        self.attempts = 0
        self.not_before_ms = 0.0

    @property
    def name(self) -> str:
        return self.message_class.__name__.removesuffix("Request")

    @property
    def key(self) -> str:
        """Whose coordinator is meant."""
        return self.manager.transactional_id or ""

    def version_limit(self) -> int:
        """The newest version that fits the transaction protocol in use."""
        return 0x7FFF

    @abstractmethod
    def message(self, version: int) -> Message: ...

    @abstractmethod
    def answered(self, answer: Any, now_ms: float) -> None: ...

    def lost(self, now_ms: float) -> None:
        """The connection broke: nobody knows whether it arrived, so it is sent again."""
        self.manager.in_flight = None
        if self.target is not Target.ANYONE:
            self.manager.forget_coordinator(self.target)
        self.manager.send_again(self, now_ms, unsure=True)

    def _obey(self, verdict: TxnVerdict, code: ErrorCode, now_ms: float, what: str = "") -> None:
        """Carries out a verdict that is the same for every request."""
        manager = self.manager
        if verdict in (TxnVerdict.LOOK_UP, TxnVerdict.AGAIN):
            if verdict is TxnVerdict.LOOK_UP:
                manager.forget_coordinator(self.target)
            manager.put_off(self.pending, code)
            manager.send_again(self, now_ms)
        elif verdict in (TxnVerdict.ABORTABLE, TxnVerdict.BUMP):
            failure = Failure(ErrorKind.ABORTABLE, what or f"{self.name} was refused", code)
            failure = manager.explained(failure, now_ms)
            manager.fail_abortable(failure, needs_bump=verdict is TxnVerdict.BUMP)
            self.pending.settle(failure)
        elif verdict is TxnVerdict.FATAL:
            # Which of the two codes a fenced producer sees depends on the request's version.
            code = E.PRODUCER_FENCED if code in _FENCED else code
            failure = Failure(ErrorKind.FATAL, what or f"{self.name} was refused", code)
            failure = manager.explained(failure, now_ms)
            manager.fail_fatally(failure)
            self.pending.settle(failure)


class FindCoordinatorHandler(TxnRequestHandler):
    priority = Priority.FIND_COORDINATOR
    target = Target.ANYONE
    message_class = FindCoordinatorRequest

    def __init__(self, manager: TransactionManager, behind: TxnRequestHandler) -> None:
        super().__init__(manager, Pending("find coordinator"))
        self.behind = behind  # waits in the queue until this one has found its coordinator
        self.wanted = behind.target
        self.wanted_key = behind.key

    def message(self, version: int) -> Message:
        if version >= 4:
            return FindCoordinatorRequest(
                key_type=self.wanted.value, coordinator_keys=[self.wanted_key]
            )
        return FindCoordinatorRequest(key_type=self.wanted.value, key=self.wanted_key)

    def answered(self, answer: FindCoordinatorResponse, now_ms: float) -> None:
        self.manager.in_flight = None
        found = answer.coordinators[0] if answer.coordinators else answer
        code = E.of(found.error_code)
        verdict = judge(code, frozenset({E.GROUP_AUTHORIZATION_FAILED}))
        if verdict is TxnVerdict.DONE:
            node = Node(found.node_id, found.host, found.port)
            self.manager.found_coordinator(self.wanted, self.wanted_key, node)
            return
        if verdict is TxnVerdict.LOOK_UP:
            verdict = TxnVerdict.AGAIN
        what = f"no coordinator for {self.wanted.name.lower()} {self.wanted_key!r}"
        self._obey(verdict, code, now_ms, what)
        if verdict is TxnVerdict.AGAIN:
            self.manager.put_off(self.behind.pending, code, found.error_message)


class InitProducerIdHandler(TxnRequestHandler):
    """Fences older producers and gives this one its id and epoch; bumps the epoch after errors."""

    message_class = InitProducerIdRequest

    def __init__(
        self, manager: TransactionManager, pending: Pending, expected: ProducerIdentity | None
    ) -> None:
        super().__init__(manager, pending)
        self.expected = expected
        self.priority = Priority.EPOCH_BUMP if expected else Priority.INIT_PRODUCER_ID
        if manager.transactional_id is None:
            self.target = Target.ANYONE

    def message(self, version: int) -> Message:
        manager = self.manager
        request = InitProducerIdRequest(
            transactional_id=manager.transactional_id,
            transaction_timeout_ms=manager.timeout_ms if manager.is_transactional else 0x7FFF_FFFF,
        )
        if self.expected is not None and version >= 3:
            request.producer_id, request.producer_epoch = self.expected
        return request

    def version_limit(self) -> int:
        return 5  # 6 is for two-phase commit (KIP-939)

    def answered(self, answer: InitProducerIdResponse, now_ms: float) -> None:
        self.manager.in_flight = None
        code = E.of(answer.error_code)
        verdict = judge(code)
        if verdict is TxnVerdict.BUMP:
            verdict = TxnVerdict.FATAL  # this was the request that should have repaired it
        if verdict is TxnVerdict.DONE:
            identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            self.manager.initialized(identity)
            self.pending.settle()
            return
        self._obey(verdict, code, now_ms, "the producer could not be initialized")


class AddPartitionsToTxnHandler(TxnRequestHandler):
    """Version 1 only: partitions must be in the transaction before records go to them."""

    priority = Priority.ADD_PARTITIONS_OR_OFFSETS
    message_class = AddPartitionsToTxnRequest

    def version_limit(self) -> int:
        return 3  # 4 and 5 are for brokers

    def message(self, version: int) -> Message:
        manager = self.manager
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(manager.pending_partitions):
            by_topic.setdefault(topic, []).append(partition)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.key,
            v3_and_below_producer_id=manager.producer.producer_id,
            v3_and_below_producer_epoch=manager.producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in by_topic.items()
            ],
        )

    def answered(self, answer: AddPartitionsToTxnResponse, now_ms: float) -> None:
        self.manager.in_flight = None
        codes: dict[TopicPartition, ErrorCode] = {
            TopicPartition(topic.name, result.partition_index): E.of(result.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }
        refused: dict[TopicPartition, ErrorCode] = {
            partition: code for partition, code in codes.items() if code is not E.NONE
        }
        if not refused:
            self.manager.partitions_added(frozenset(codes))
            self.pending.settle()
            return
        partition, code, verdict = self._worst(refused)
        self._obey(verdict, code, now_ms, f"{partition} was not added to the transaction")

    @staticmethod
    def _worst(
        refused: dict[TopicPartition, ErrorCode],
    ) -> tuple[TopicPartition, ErrorCode, TxnVerdict]:
        """The refusal that decides; "not attempted" only echoes another partition's."""
        partition = min(refused, key=lambda p: refused[p] is E.OPERATION_NOT_ATTEMPTED)
        code = refused[partition]
        verdict = judge(code)
        known_fatal = _FENCED | {E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE}
        if verdict is TxnVerdict.FATAL and code not in known_fatal:
            verdict = TxnVerdict.ABORTABLE
        return partition, code, verdict


class AddOffsetsToTxnHandler(TxnRequestHandler):
    """Version 1 only: the group's offsets must be in the transaction before they are committed."""

    priority = Priority.ADD_PARTITIONS_OR_OFFSETS
    message_class = AddOffsetsToTxnRequest

    def __init__(
        self,
        manager: TransactionManager,
        pending: Pending,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
    ) -> None:
        super().__init__(manager, pending)
        self.offsets = offsets
        self.group = group

    def version_limit(self) -> int:
        return 3  # 4 belongs to version 2, which has no use for this request

    def message(self, version: int) -> Message:
        manager = self.manager
        return AddOffsetsToTxnRequest(
            transactional_id=self.key,
            producer_id=manager.producer.producer_id,
            producer_epoch=manager.producer.epoch,
            group_id=self.group.group_id,
        )

    def answered(self, answer: AddOffsetsToTxnResponse, now_ms: float) -> None:
        manager = self.manager
        manager.in_flight = None
        code = E.of(answer.error_code)
        verdict = judge(code, frozenset({E.GROUP_AUTHORIZATION_FAILED}))
        if verdict is TxnVerdict.DONE:
            manager.started = True
            manager.enqueue(TxnOffsetCommitHandler(manager, self.pending, self.offsets, self.group))
            return
        what = f"group {self.group.group_id!r} was not added to the transaction"
        self._obey(verdict, code, now_ms, what)


class TxnOffsetCommitHandler(TxnRequestHandler):
    """TxnOffsetCommit: goes to the *group's* coordinator, which checks the member (KIP-447)."""

    priority = Priority.ADD_PARTITIONS_OR_OFFSETS
    target = Target.GROUP
    message_class = TxnOffsetCommitRequest

    # A new generation of the group is no reason to give up the producer.
    _ABORTABLE = frozenset(
        {
            E.GROUP_AUTHORIZATION_FAILED,
            E.TOPIC_AUTHORIZATION_FAILED,
            E.FENCED_INSTANCE_ID,
            E.UNKNOWN_MEMBER_ID,
            E.ILLEGAL_GENERATION,
            E.STALE_MEMBER_EPOCH,
            E.FENCED_MEMBER_EPOCH,
            E.REBALANCE_IN_PROGRESS,
            E.OFFSET_METADATA_TOO_LARGE,
            E.INVALID_COMMIT_OFFSET_SIZE,
        }
    )

    def __init__(
        self,
        manager: TransactionManager,
        pending: Pending,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
    ) -> None:
        super().__init__(manager, pending)
        self.offsets = dict(offsets)
        self.group = group

    @property
    def key(self) -> str:
        return self.group.group_id

    def version_limit(self) -> int:
        return 5 if self.manager.version == 2 else 4

    def message(self, version: int) -> Message:
        manager, group = self.manager, self.group
        by_topic: dict[str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), committed in sorted(self.offsets.items()):
            by_topic.setdefault(topic, []).append(
                TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    committed_metadata=committed.metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=manager.transactional_id or "",
            group_id=group.group_id,
            producer_id=manager.producer.producer_id,
            producer_epoch=manager.producer.epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, partitions=indexes)
                for name, indexes in by_topic.items()
            ],
        )
        if version >= 3:
            request.generation_id = group.generation_id
            request.member_id = group.member_id
            request.group_instance_id = group.group_instance_id
        return request

    def answered(self, answer: TxnOffsetCommitResponse, now_ms: float) -> None:
        self.manager.in_flight = None
        worst: tuple[TxnVerdict, ErrorCode, TopicPartition] | None = None
        for topic in answer.topics:
            for result in topic.partitions:
                partition = TopicPartition(topic.name, result.partition_index)
                code = E.of(result.error_code)
                verdict = self._judge(code)
                if verdict is TxnVerdict.DONE:
                    self.offsets.pop(partition, None)
                elif worst is None or _SEVERITY[verdict] > _SEVERITY[worst[0]]:
                    worst = verdict, code, partition
        if worst is None:
            self.pending.settle()
            return
        verdict, code, partition = worst
        self._obey(verdict, code, now_ms, f"the offset of {partition} was not committed")

    def _judge(self, code: ErrorCode) -> TxnVerdict:
        if code is E.REQUEST_TIMED_OUT:
            return TxnVerdict.LOOK_UP
        return judge(code, self._ABORTABLE)


_SEVERITY = {verdict: severity for severity, verdict in enumerate(TxnVerdict)}


class EndTxnHandler(TxnRequestHandler):
    priority = Priority.END_TXN
    message_class = EndTxnRequest

    def __init__(self, manager: TransactionManager, pending: Pending, commit: bool) -> None:
        super().__init__(manager, pending)
        self.commit = commit

    @property
    def name(self) -> str:
        return "commit" if self.commit else "abort"

    def version_limit(self) -> int:
        return 5 if self.manager.version == 2 else 4

    def message(self, version: int) -> Message:
        manager = self.manager
        return EndTxnRequest(
            transactional_id=self.key,
            producer_id=manager.producer.producer_id,
            producer_epoch=manager.producer.epoch,
            committed=self.commit,
        )

    def answered(self, answer: EndTxnResponse, now_ms: float) -> None:
        manager = self.manager
        manager.in_flight = None
        code = E.of(answer.error_code)
        verdict = judge(code)
        if verdict is TxnVerdict.DONE:
            identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            manager.transaction_ended(identity if identity.is_valid else None)
            if not manager.bumping:
                self.pending.settle()
            return
        if verdict in (TxnVerdict.ABORTABLE, TxnVerdict.BUMP) and not self.commit:
            # There is nothing left to abort; only a new epoch makes the producer usable again.
            manager.bump_after_failed_abort(
                self.pending, Failure(ErrorKind.FATAL, "abort failed", code)
            )
            return
        self._obey(verdict, code, now_ms, f"the {self.name} was refused")
