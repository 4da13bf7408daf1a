"""What the coordinator is asked (commands), what it orders (effects) and what it answers (replies).

Commands carry the API's name; `now_ms` comes beside them, and fresh producer ids from the counter
that the coordinator was given: a machine never invents numbers. Nobody changes one once it is made,
but they are not frozen: a frozen dataclass takes four times as long to make.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from semel.core.machine import Command as AnyCommand
from semel.core.transactions.states import TxnState
from semel.core.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TV_0,
    TopicPartition,
    Transaction,
)
from semel.wire.errors import ErrorCode


@dataclass(slots=True, eq=False)
class WriteMarkers:
    """The order to tell every partition how its transaction ended."""

    prepared: Transaction

    @property
    def producer_id(self) -> int:
        return self.prepared.producer_id

    @property
    def epoch(self) -> int:
        return self.prepared.epoch

    @property
    def commit(self) -> bool:
        return self.prepared.committing

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return self.prepared.partitions

    @property
    def version(self) -> int:
        return self.prepared.client_version


@dataclass(slots=True)
class Reply:
    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    ongoing_producer_id: int = NO_PRODUCER_ID
    ongoing_epoch: int = NO_EPOCH


@dataclass(slots=True)
class PartitionErrors:
    """The answer to VerifyPartitions; `error` is that of all of them when they share one."""

    error: ErrorCode = ErrorCode.NONE
    by_partition: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)


@dataclass(slots=True)
class Found:
    """The answer to Describe and List."""

    error: ErrorCode = ErrorCode.NONE
    transactions: tuple[Transaction, ...] = ()


OK = Reply()

AnyReply_co = TypeVar("AnyReply_co", bound=Reply | PartitionErrors | Found, covariant=True)


class TransactionCommand(AnyCommand[AnyReply_co], Protocol[AnyReply_co]):
    """A command about one transactional id."""

    @property
    def transactional_id(self) -> str: ...


class _Answered:
    """A command that is answered by a `Reply`, also when no coordinator can decide it."""

    __slots__ = ()

    def refused(self, error: ErrorCode) -> Reply:
        return Reply(error)


class _Searching:
    __slots__ = ()

    def refused(self, error: ErrorCode) -> Found:
        return Found(error)


@dataclass(slots=True)
class InitProducerId(_Answered):
    transactional_id: str
    timeout_ms: int
    expected_producer_id: int = NO_PRODUCER_ID
    expected_epoch: int = NO_EPOCH
    enable_two_phase: bool = False
    keep_prepared: bool = False
    who: str = ""
    """The client, for the one it fences: "client etl from 10.0.0.7"."""


@dataclass(slots=True)
class AddPartitions(_Answered):
    """AddPartitionsToTxn and AddOffsetsToTxn; with TV_2 the implicit adding of Produce."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    client_version: int = TV_0


@dataclass(slots=True)
class VerifyPartitions:
    """AddPartitionsToTxn with verifyOnly: are these in the open transaction?"""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]

    def refused(self, error: ErrorCode) -> "PartitionErrors":
        return PartitionErrors(error, dict.fromkeys(self.partitions, error))


@dataclass(slots=True)
class EndTxn(_Answered):
    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool
    client_version: int = TV_0


@dataclass(slots=True)
class MarkersWritten(_Answered):
    """Every partition of this prepared transaction has its marker.

    The transaction is known by being the same object, not an equal one: two transactions of a
    version 1 producer can be equal in every field, and a late report about the first must not
    complete the second.
    """

    prepared: Transaction

    @property
    def transactional_id(self) -> str:
        return self.prepared.transactional_id


@dataclass(slots=True)
class AbortTimedOut(_Answered):
    """Time has passed: abort what has been open for too long."""


@dataclass(slots=True)
class ForgetIdle(_Answered):
    """Time has passed: forget the ids that nobody has used for long."""


@dataclass(slots=True)
class Describe(_Searching):
    transactional_id: str


@dataclass(slots=True)
class List(_Searching):
    states: frozenset[TxnState] | None = None
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    pattern: str | None = None


Command = (
    InitProducerId
    | AddPartitions
    | VerifyPartitions
    | EndTxn
    | MarkersWritten
    | AbortTimedOut
    | ForgetIdle
    | Describe
    | List
)
