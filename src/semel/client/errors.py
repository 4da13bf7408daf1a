"""From Kafka's codes and the machines' failures to the exceptions of `semel.errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.errors import AbortableError, FatalError, FencedError, RetriableError, SemelError
from semel.errors import UsageError as UsageError
from semel.wire.errors import ErrorCode, ErrorKind

if TYPE_CHECKING:
    from semel.client.machines.transactions import NotAllowed
    from semel.client.machines.types import Failure, TopicPartition

_KINDS: dict[ErrorKind, type[SemelError]] = {
    ErrorKind.RETRIABLE: RetriableError,
    ErrorKind.ABORTABLE: AbortableError,
    ErrorKind.FATAL: FatalError,
}


def _kind(kind: ErrorKind, code: ErrorCode) -> type[SemelError]:
    if kind is ErrorKind.FATAL and code is ErrorCode.PRODUCER_FENCED:
        return FencedError
    return _KINDS.get(kind, FatalError)


def error_of(failure: Failure) -> SemelError:
    """The exception for a failure that the core decided on."""
    return _kind(failure.kind, failure.code)(str(failure), failure.code)


def error_for(code: int, what: str, *, why: str | None = None) -> SemelError:
    """The exception for a code in an answer. `why` is the broker's own message, if it gave one."""
    known = ErrorCode.of(code)
    kind = _kind(known.kind, known)
    reason = f"{known.meaning} ({known.name}{f': {why}' if why else ''})"
    return kind(f"{what}: {reason}. {known.advice}", known)


def refusal_of(refused: NotAllowed) -> SemelError:
    """The exception for a call that the producer's state does not allow."""
    if refused.failure is None:
        return UsageError(str(refused))
    raised = error_of(refused.failure)
    raised.args = (str(refused),)
    return raised


def no_such_partition(wanted: TopicPartition, count: int) -> UsageError:
    """`count`: how many partitions the topic has."""
    has = "1 partition, 0" if count == 1 else f"{count} partitions, 0 to {count - 1}"
    return UsageError(
        f"topic {wanted.topic!r} has {has}: there is no partition {wanted.partition}. "
        "Name one that there is, or add partitions to the topic",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
