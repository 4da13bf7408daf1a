"""Three kinds of exception, by what there is to do: send again, abort and run again, or stop.

Each says what happened, why, and what to do; `code` is Kafka's, where a broker named one.
"""

from semel.client.machines.fetching import Truncation
from semel.client.machines.transactions import NotAllowed
from semel.client.machines.types import Failure
from semel.wire.errors import ErrorCode, ErrorKind


class ClientError(Exception):
    """All that a client raises."""

    def __init__(self, text: str, code: ErrorCode = ErrorCode.NONE) -> None:
        super().__init__(text)
        self.code = code


class RetriableError(ClientError):
    """It may work later: make the same call again. Nothing needs to be undone."""


class AbortableError(ClientError):
    """The transaction cannot be committed. Abort it and run it again; the producer is fine."""


class FatalError(ClientError):
    """This client cannot go on, or the call cannot work as it is. Repeating it does not help."""


class FencedError(FatalError):
    """Another producer with the same transactional id has taken over."""


class TruncatedError(FatalError):
    """Records that this consumer has read are gone from the log (KIP-320)."""

    def __init__(self, truncation: Truncation) -> None:
        partition, position, diverged_at = truncation
        where = "" if diverged_at is None else f": from offset {diverged_at} on it differs"
        super().__init__(
            f"the log of {partition} was cut back behind our position {position}{where}. "
            "What was read there is gone; seek to an offset, or set auto_offset_reset",
            ErrorCode.OFFSET_OUT_OF_RANGE,
        )
        self.partition = partition
        self.position = position
        self.diverged_at = diverged_at  # the first offset that differs, if the broker can say


class UsageError(FatalError):
    """A call in the wrong order, or a setting that makes no sense."""


_KINDS: dict[ErrorKind, type[ClientError]] = {
    ErrorKind.RETRIABLE: RetriableError,
    ErrorKind.ABORTABLE: AbortableError,
    ErrorKind.FATAL: FatalError,
}


def error_of(failure: Failure) -> ClientError:
    """The exception for a failure that the core decided on."""
    if failure.kind is ErrorKind.FATAL and failure.code is ErrorCode.PRODUCER_FENCED:
        return FencedError(str(failure), failure.code)
    return _KINDS.get(failure.kind, FatalError)(str(failure), failure.code)


def error_for(code: int, what: str, *, why: str | None = None) -> ClientError:
    """The exception for a code in an answer. `why` is the broker's own message, if it gave one."""
    known = ErrorCode.of(code)
    kind = _KINDS.get(known.kind, FatalError)
    reason = f"{known.meaning} ({known.name}{f': {why}' if why else ''})"
    return kind(f"{what}: {reason}. {known.advice}", known)


def refusal_of(refused: NotAllowed) -> ClientError:
    """The exception for a call that the producer's state does not allow."""
    if refused.failure is None:
        return UsageError(str(refused))
    raised = error_of(refused.failure)
    raised.args = (str(refused),)
    return raised
