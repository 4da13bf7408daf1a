"""Every exception that a user of Semel can meet: of the clients and of Spark, in one family.

    SemelError                    all of them
    ├── RetriableError            it may work later: make the same call again
    │   ├── UnreachableError      nobody answered in the time allowed
    │   ├── BatchFailedError      Spark: a batch failed in every attempt; nothing of it is visible
    │   └── StoppedError          Spark: the batch in progress was aborted by a stop
    ├── AbortableError            abort the transaction and run it again
    └── FatalError                repeating the call does not help
        ├── UsageError            a call in the wrong order, or a setting that makes no sense
        │   ├── NoJavaError               Spark: no Java to run on
        │   └── NoCommittedOffsetsError   Spark: nothing to continue from
        ├── FencedError           another producer has taken over
        ├── DeserializationError  a record that a deserializer cannot read
        ├── TruncatedError        records that were read are gone from the log
        ├── DataLostError         Spark: offsets that were asked for are gone from the log
        ├── RefusedError          Spark: the promise of exactly once cannot be kept here
        └── StaleCheckpointError  Spark: the checkpoint does not fit what is committed

Each says what happened, why, and what to do. `code` is Kafka's error where a broker named one, else
`ErrorCode.NONE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.client.consumer.records import ConsumerRecord
    from semel.client.machines.types import TopicPartition

__all__ = [
    "AbortableError",
    "BatchFailedError",
    "DataLostError",
    "DeserializationError",
    "ErrorCode",
    "FatalError",
    "FencedError",
    "NoCommittedOffsetsError",
    "NoJavaError",
    "RefusedError",
    "RetriableError",
    "SemelError",
    "StaleCheckpointError",
    "StoppedError",
    "TruncatedError",
    "UnreachableError",
    "UsageError",
]


class SemelError(Exception):
    """All that Semel raises."""

    code: ErrorCode
    """Kafka's error, where a broker named one; else `ErrorCode.NONE`."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.NONE) -> None:
        super().__init__(text)
        self.code = code

    def __reduce__(self) -> tuple[Callable[..., SemelError], tuple[Any, ...]]:
        """Crosses processes whole, whatever its `__init__` takes."""
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[SemelError], args: tuple[Any, ...], facts: dict[str, Any]) -> SemelError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class RetriableError(SemelError):
    """It may work later: make the same call again. Nothing needs to be undone."""


class UnreachableError(RetriableError):
    """Nobody answered in the time allowed."""


class AbortableError(SemelError):
    """The transaction cannot be committed. Abort it and run it again; the producer is fine."""


class FatalError(SemelError):
    """This client cannot go on, or the call cannot work as it is. Repeating it does not help."""


class UsageError(FatalError):
    """A call in the wrong order, or a setting that makes no sense."""


class FencedError(FatalError):
    """Another producer with the same transactional id has taken over."""


class TruncatedError(FatalError):
    """Records that this consumer has read are gone from the log (KIP-320)."""

    partition: TopicPartition
    position: int
    """The offset that would have been read next."""
    diverged_at: int | None
    """The first offset that differs, if the broker can say."""

    def __init__(self, partition: TopicPartition, position: int, diverged_at: int | None) -> None:
        where = "" if diverged_at is None else f": from offset {diverged_at} on it differs"
        super().__init__(
            f"the log of {partition} was cut back behind our position {position}{where}. "
            "What was read there is gone; seek to an offset, or set auto_offset_reset",
            ErrorCode.OFFSET_OUT_OF_RANGE,
        )
        self.partition = partition
        self.position = position
        self.diverged_at = diverged_at


class DeserializationError(FatalError):
    """A key or a value that the consumer's deserializer cannot read, or that does not fit the
    schema of Spark's source.

    A consumer's position stays at the record: the next poll raises again. To go on without it:

        consumer.seek(error.partition, error.offset + 1)

    `__cause__` is what the deserializer raised, `record` has the bytes as they are in the log.
    """

    partition: TopicPartition
    offset: int
    record: ConsumerRecord[bytes, bytes]
    """The record as it is in the log, for a topic of dead letters."""

    def __init__(self, text: str, record: ConsumerRecord[bytes, bytes]) -> None:
        super().__init__(text)
        self.partition = record.topic_partition
        self.offset = record.offset
        self.record = record


# Spark's own. They are here, and not beside what raises them, so that catching them needs no Spark.


class BatchFailedError(RetriableError):
    """A batch could not be committed in the attempts allowed. Nothing of it is visible."""


class StoppedError(RetriableError):
    """The batch in progress was aborted, because somebody asked the pipeline to stop."""


class NoJavaError(UsageError):
    """Spark needs a Java, and there is none."""


class NoCommittedOffsetsError(UsageError):
    """`startingOffsets=committed`, but the application has committed nothing yet."""


class DataLostError(FatalError):
    """Offsets that the source was to read are gone from the log: retention was faster."""


class RefusedError(FatalError):
    """This broker or this Spark cannot keep the promise; the message says what is missing."""


class StaleCheckpointError(FatalError):
    """The query's checkpoint does not continue what its application has committed."""
