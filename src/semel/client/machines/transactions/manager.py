"""The TransactionManager: a producer's state, its identity, and the requests it still has to send.

Pure: the shell calls `next_request`, sends what it gets, and reports the answer to the request. At
most one request is under way, so no two answers ever race. The user's calls return a `Pending`
that settles when the coordinator has answered; a call that timed out is repeated, never replaced.
"""

from __future__ import annotations

from semel.client.machines.patience import Backoff
from semel.client.machines.transactions.requests import (
    AddOffsetsToTxnHandler,
    AddPartitionsToTxnHandler,
    EndTxnHandler,
    FindCoordinatorHandler,
    InitProducerIdHandler,
    Target,
    TxnOffsetCommitHandler,
    TxnRequestHandler,
)
from semel.client.machines.transactions.states import MOVES, State
from semel.client.machines.types import (
    NO_PRODUCER,
    Failure,
    GroupMetadata,
    Node,
    OffsetAndMetadata,
    Pending,
    ProducerIdentity,
    TopicPartition,
)
from semel.wire.errors import ErrorCode, ErrorKind

_LAST_EPOCH = 0x7FFF
# KAFKA-5477: right after a commit the first AddPartitions may meet the last transaction's markers.
_CONCURRENT_RETRY_MS = 20.0

_FATAL_FROM_PRODUCE = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


# What a producer hears whose transaction its coordinator has aborted: of the coordinator, or of a
# partition's leader, in either version.
_OF_TIMED_OUT = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


class NotAllowed(Exception):
    """A call that the producer's state does not allow; `failure` is the error that led there."""

    def __init__(self, text: str, failure: Failure | None = None) -> None:
        super().__init__(text)
        self.failure = failure


class TransactionManager:
    def __init__(
        self,
        transactional_id: str | None = None,
        timeout_ms: int = 60_000,
        backoff: Backoff = Backoff(),  # noqa: B008  (frozen)
    ) -> None:
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.backoff = backoff
        self.version = 1
        self.can_bump = True
        self.state = State.UNINITIALIZED
        self.producer = NO_PRODUCER
        self.failure: Failure | None = None
        self.started = False
        self.began_ms: float | None = None  # when something was first sent in the transaction
        self.bumping = False
        self.new_partitions: set[TopicPartition] = set()
        self.pending_partitions: set[TopicPartition] = set()
        self.partitions: set[TopicPartition] = set()
        self.in_flight: TxnRequestHandler | None = None
        self._queue: list[TxnRequestHandler] = []
        self._coordinators: dict[Target, tuple[str, Node]] = {}
        self._transition: tuple[State, Pending] | None = None
        self._reset_sequences = False
        self._put_off: tuple[Pending, ErrorCode, str | None] | None = None

    # What the user calls

    @property
    def is_transactional(self) -> bool:
        return self.transactional_id is not None

    def init_transactions(self) -> Pending:
        """Asks for an identity; idempotent producers do so by themselves before the first send."""
        repeated = self._repeated(State.INITIALIZING, "init_transactions")
        if repeated is not None:
            return repeated
        self._refuse_after_errors("init_transactions")
        self._move(State.INITIALIZING)
        pending = Pending("init_transactions")
        self.enqueue(InitProducerIdHandler(self, pending, expected=None))
        return self._begin_transition(State.INITIALIZING, pending)

    def begin_transaction(self) -> None:
        self._need_transactional_id("begin_transaction")
        self._refuse_during_transition("begin_transaction")
        self._refuse_after_errors("begin_transaction")
        if self.state is State.UNINITIALIZED:
            raise NotAllowed("begin_transaction needs init_transactions before it")
        if self.state is not State.READY:
            raise NotAllowed("a transaction is open: commit or abort it before beginning another")
        self._move(State.IN_TRANSACTION)

    def add_partition(self, partition: TopicPartition, now_ms: float) -> None:
        """Says that a record for the partition is about to be buffered."""
        if self.state is not State.IN_TRANSACTION:
            self.check_may_send()
        if self.began_ms is None:
            self.began_ms = now_ms
        if partition in self.partitions or partition in self.pending_partitions:
            return
        if self.version == 2:
            self.partitions.add(partition)  # Produce adds it at the broker (KIP-890)
            self.started = True
        else:
            self.new_partitions.add(partition)

    def check_may_send(self) -> None:
        if self.state is not State.IN_TRANSACTION:
            self._refuse_during_transition("send")
            self._refuse_after_errors("send")
            raise NotAllowed("send needs begin_transaction before it")

    @property
    def transaction(self) -> object:
        """Another object for every transaction, for who wants to know whether one has ended."""
        return self._transition

    def send_offsets(
        self,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
        now_ms: float,
    ) -> Pending:
        self._need_transactional_id("send_offsets_to_transaction")
        self._refuse_during_transition("send_offsets_to_transaction")
        self._refuse_after_errors("send_offsets_to_transaction")
        if self.state is not State.IN_TRANSACTION:
            raise NotAllowed("send_offsets_to_transaction needs begin_transaction before it")
        if self.began_ms is None:
            self.began_ms = now_ms
        pending = Pending("send_offsets_to_transaction")
        if not offsets:
            pending.settle()
        elif self.version == 2:
            self.started = True
            self.enqueue(TxnOffsetCommitHandler(self, pending, offsets, group))
        else:
            self.enqueue(AddOffsetsToTxnHandler(self, pending, offsets, group))
        return pending

    def commit(self) -> Pending:
        self._need_transactional_id("commit_transaction")
        repeated = self._repeated(State.COMMITTING_TRANSACTION, "commit_transaction")
        if repeated is not None:
            return repeated
        self._refuse_after_errors("commit_transaction")
        if self.state is not State.IN_TRANSACTION:
            raise NotAllowed("commit_transaction needs begin_transaction before it")
        self._move(State.COMMITTING_TRANSACTION)
        return self._end(commit=True)

    def abort(self) -> Pending:
        self._need_transactional_id("abort_transaction")
        repeated = self._repeated(State.ABORTING_TRANSACTION, "abort_transaction")
        if repeated is not None:
            return repeated
        if self.state is not State.ABORTABLE_ERROR:
            self._refuse_after_errors("abort_transaction")
            if self.state is not State.IN_TRANSACTION:
                raise NotAllowed("abort_transaction needs begin_transaction before it")
        forgotten = self._identity_is_forgotten()
        self._move(State.ABORTING_TRANSACTION)
        self.new_partitions.clear()
        if forgotten:
            self.bumping = True
            pending = Pending("abort_transaction")
            self._begin_transition(State.ABORTING_TRANSACTION, pending)
            self.transaction_ended(None)
            return pending
        return self._end(commit=False)

    # What the shell calls

    def next_request(self, now_ms: float, batches_unsettled: bool) -> TxnRequestHandler | None:
        """The request to send now. It stays `in_flight` until it was `answered` or `lost`."""
        if self.in_flight is not None or self.state is State.FATAL_ERROR:
            return None
        if self.new_partitions:
            self.pending_partitions |= self.new_partitions
            self.new_partitions.clear()
            if not any(isinstance(queued, AddPartitionsToTxnHandler) for queued in self._queue):
                self.enqueue(AddPartitionsToTxnHandler(self, Pending("add partitions")))
        while self._queue:
            request = self._queue[0]
            if isinstance(request, EndTxnHandler):
                if batches_unsettled:
                    return None  # the coordinator may only be asked when every record is answered
                if not self.started:
                    self._queue.pop(0)
                    self._end_of_nothing(request)
                    continue
            if request.not_before_ms > now_ms:
                return None
            if request.target is not Target.ANYONE and self.coordinator_for(request) is None:
                request = FindCoordinatorHandler(self, request)
            else:
                self._queue.pop(0)
            self.in_flight = request
            return request
        return None

    def wake_at_ms(self) -> float | None:
        """When `next_request` is worth asking again, if only time is missing."""
        if self.in_flight is not None or not self._queue:
            return None
        return self._queue[0].not_before_ms

    def coordinator_for(self, request: TxnRequestHandler) -> Node | None:
        key, node = self._coordinators.get(request.target, ("", None))
        return node if key == request.key else None

    def may_send_to(self, partition: TopicPartition) -> bool:
        """Whether batches for the partition may go out now."""
        if self.state is State.FATAL_ERROR or not self.producer.is_valid:
            return False
        return not self.is_transactional or partition in self.partitions

    def take_sequence_reset(self) -> bool:
        """Whether sequences start at 0 because the identity changed; True once per change."""
        reset, self._reset_sequences = self._reset_sequences, False
        return reset

    def batch_failed(self, failure: Failure) -> None:
        """A batch of the transaction was given up: what the user must do depends on the code."""
        if failure.code in _FATAL_FROM_PRODUCE:
            self.fail_fatally(failure._replace(kind=ErrorKind.FATAL))
        elif self.is_transactional:
            # Whether the batch was written may be unknown: only a new epoch makes that harmless.
            self.fail_abortable(failure._replace(kind=ErrorKind.ABORTABLE), needs_bump=True)

    def bump_idempotent_epoch(self) -> None:
        """A producer without transactions bumps its own epoch when a sequence is lost (KIP-360)."""
        assert not self.is_transactional
        self._reset_sequences = True
        if self.producer.epoch < _LAST_EPOCH:
            self.producer = self.producer._replace(epoch=self.producer.epoch + 1)
        else:
            self.producer = NO_PRODUCER
            self._move(State.UNINITIALIZED)

    def close(self, failure: Failure) -> None:
        """No more answers will come: everything that waits fails."""
        if self.state is not State.FATAL_ERROR:
            self.fail_fatally(failure)

    def explained(self, failure: Failure, now_ms: float) -> Failure:
        """A coordinator that has aborted a transaction for its age says many things, but not that.

        So does one that has fenced the producer: the age tells them apart, nearly always.
        """
        ran_ms = now_ms - (now_ms if self.began_ms is None else self.began_ms)
        if failure.code not in _OF_TIMED_OUT or ran_ms < self.timeout_ms:
            return failure
        first = (
            "Abort it and run it again"
            if failure.kind is ErrorKind.ABORTABLE
            else "Close this producer and run the transaction again with a new one"
        )
        rival = (
            ", unless another producer with this transactional id has taken over"
            if failure.code is ErrorCode.PRODUCER_FENCED
            else ""
        )
        return failure._replace(
            why=f"the transaction had run for {ran_ms / 1000:.1f} s, longer than its timeout "
            f"(transaction.timeout.ms, {self.timeout_ms} ms), so its coordinator has aborted it"
            f"{rival}",
            advice=f"{first}; keep transactions shorter, or raise transaction_timeout_ms.",
        )

    def why_put_off(self, pending: Pending) -> str:
        """What brokers say to an operation that waits for them."""
        if self._put_off is None or self._put_off[0] is not pending:
            return ""
        _, code, told = self._put_off
        return (
            f"; the last answer was that {code.meaning} ({code.name}{f': {told}' if told else ''})"
        )

    # What the requests report

    def put_off(self, pending: Pending, code: ErrorCode, told: str | None = None) -> None:
        """An answer that says no more than to ask again. One with a reason counts for longer."""
        last = self._put_off
        if told or last is None or last[0] is not pending or not last[2]:
            self._put_off = pending, code, told

    def enqueue(self, request: TxnRequestHandler) -> None:
        self._queue.append(request)
        self._queue.sort(key=lambda queued: queued.priority)  # stable: first come, first served

    def send_again(self, request: TxnRequestHandler, now_ms: float, unsure: bool = False) -> None:
        """Queues a request once more, later each time. `unsure`: it may have arrived already."""
        waiting = request.behind if isinstance(request, FindCoordinatorHandler) else request
        if self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            # Given up, but perhaps the coordinator has begun a transaction that we know nothing
            # of, which an EndTxn in an empty one would not end: a new epoch does.
            may_have_begun = unsure and isinstance(
                request, AddPartitionsToTxnHandler | AddOffsetsToTxnHandler
            )
            self.bumping = self.bumping or (may_have_begun and self.can_bump)
            waiting.pending.settle(self.failure)
            return
        waiting.attempts += 1
        delay = self.backoff.delay_ms(waiting.attempts)
        if isinstance(waiting, AddPartitionsToTxnHandler) and not self.partitions:
            delay = min(delay, _CONCURRENT_RETRY_MS)
        waiting.not_before_ms = now_ms + delay
        if waiting is request:
            self.enqueue(request)

    def forget_coordinator(self, target: Target) -> None:
        self._coordinators.pop(target, None)

    def found_coordinator(self, target: Target, key: str, node: Node) -> None:
        self._coordinators[target] = key, node

    def initialized(self, identity: ProducerIdentity) -> None:
        self.producer = identity
        self.bumping = False
        self._reset_sequences = True
        self._move(State.READY)

    def partitions_added(self, partitions: frozenset[TopicPartition]) -> None:
        self.pending_partitions -= partitions
        self.partitions |= partitions
        self.started = True

    def transaction_ended(self, successor: ProducerIdentity | None) -> None:
        """EndTxn succeeded. Version 2 hands out the next identity with it."""
        self.started = False
        self.began_ms = None
        self.new_partitions.clear()
        self.pending_partitions.clear()
        self.partitions.clear()
        if successor is not None:
            self.producer = successor
            self._reset_sequences = True
            self.bumping = False
        if not self.bumping:
            self._move(State.READY)
            return
        assert self._transition is not None
        self._move(State.INITIALIZING)
        self.enqueue(InitProducerIdHandler(self, self._transition[1], expected=self.producer))

    def bump_after_failed_abort(self, pending: Pending, failure: Failure) -> None:
        if self.can_bump:
            self.bumping = True
            self.transaction_ended(None)
        else:
            self.fail_fatally(failure)
            pending.settle(failure)

    def fail_abortable(self, failure: Failure, needs_bump: bool) -> None:
        if self.state is State.FATAL_ERROR:
            return
        if self.state is State.ABORTING_TRANSACTION:  # the abort under way settles it
            self.bumping = self.bumping or (needs_bump and self.version == 1 and self.can_bump)
            return
        if needs_bump and self.version == 1:
            if not self.can_bump:
                self.fail_fatally(failure._replace(kind=ErrorKind.FATAL))
                return
            self.bumping = True
        if self.state is State.ABORTABLE_ERROR:
            return  # the first error is the one that explains the others
        self.failure = failure
        self._move(State.ABORTABLE_ERROR)
        self._give_up_queue(failure)

    def fail_fatally(self, failure: Failure) -> None:
        if self.state is State.FATAL_ERROR:
            return
        self.failure = failure
        self._move(State.FATAL_ERROR)
        self._give_up_queue(failure)

    # Within

    def _end(self, commit: bool) -> Pending:
        pending = Pending("commit_transaction" if commit else "abort_transaction")
        self.enqueue(EndTxnHandler(self, pending, commit))
        return self._begin_transition(self.state, pending)

    def _end_of_nothing(self, request: EndTxnHandler) -> None:
        """Nothing reached the coordinator, so there is nothing to end there."""
        self.transaction_ended(None)
        if self.state is State.READY:
            request.pending.settle()

    def _identity_is_forgotten(self) -> bool:
        """The coordinator no longer knows our id: EndTxn cannot succeed, only a new id can."""
        return self.failure is not None and (
            self.failure.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING and self.can_bump
        )

    def _give_up_queue(self, failure: Failure) -> None:
        waiting, self._queue = self._queue, []
        for request in waiting:
            request.pending.settle(failure)
        if self._transition is not None:
            self._transition[1].settle(failure)

    def _begin_transition(self, state: State, pending: Pending) -> Pending:
        self._transition = state, pending
        return pending

    def _repeated(self, state: State, operation: str) -> Pending | None:
        """The same call as before, which timed out: its outcome is still awaited."""
        if self._transition is None or self._transition[1].settled:
            return None
        if self._transition[0] is state:
            return self._transition[1]
        self._refuse_during_transition(operation)
        return None

    def _refuse_during_transition(self, operation: str) -> None:
        if self._transition is not None and not self._transition[1].settled:
            before = self._transition[1].operation
            raise NotAllowed(
                f"{operation} must wait: {before} has not ended; call {before} again to wait for it"
            )

    def _refuse_after_errors(self, operation: str) -> None:
        if self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            assert self.failure is not None
            raise NotAllowed(f"{operation} is not possible: {self.failure}", self.failure)

    def _need_transactional_id(self, operation: str) -> None:
        if not self.is_transactional:
            raise NotAllowed(f"{operation} needs a producer with a transactional_id")

    def _move(self, state: State) -> None:
        if state not in MOVES[self.state]:
            raise AssertionError(f"no move from {self.state.name} to {state.name}")
        if state not in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            self.failure = None
        self.state = state
