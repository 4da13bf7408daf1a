"""What brokers last said of partitions that are tried again: why a batch comes too late."""

from collections.abc import Iterable

from semel.client.machines.accumulator import ProducerBatch
from semel.client.machines.types import Failure, TopicPartition
from semel.errors import RetriableError
from semel.wire.errors import ErrorCode, ErrorKind

_NEVER = (-1.0, ErrorCode.NONE, "")


class Refusals:
    def __init__(self) -> None:
        self._last: dict[TopicPartition, tuple[float, ErrorCode, str]] = {}

    def note(self, partition: TopicPartition, now_ms: float, code: ErrorCode, why: str) -> None:
        self._last[partition] = now_ms, code, why

    def too_late(self, batch: ProducerBatch, timeout_ms: int) -> Failure:
        what = f"a batch for {batch.partition} was not delivered within {timeout_ms} ms"
        code, why = self._of(batch)
        if code is ErrorCode.NONE:
            return Failure(ErrorKind.RETRIABLE, what, ErrorCode.REQUEST_TIMED_OUT)
        return Failure(ErrorKind.RETRIABLE, f"{what} ({why})", code)

    def late(self, what: str, batches: Iterable[ProducerBatch], advice: str) -> RetriableError:
        """For who has no more time to wait while these batches are not written."""
        for batch in batches:
            code, why = self._of(batch)
            if code is not ErrorCode.NONE:
                because = (
                    f"{batch.partition} was refused because {code.meaning} ({code.name}: {why})"
                )
                return RetriableError(f"{what}; {because}: {advice}", code)
        return RetriableError(f"{what}: {advice}", ErrorCode.REQUEST_TIMED_OUT)

    def _of(self, batch: ProducerBatch) -> tuple[ErrorCode, str]:
        """A refusal counts only if it came while the batch waited."""
        refused_ms, code, why = self._last.get(batch.partition, _NEVER)
        return (ErrorCode.NONE, "") if refused_ms < batch.created_ms else (code, why)
