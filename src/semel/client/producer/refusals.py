"""What brokers last said of partitions that are tried again: why a batch comes too late."""

from semel.client.machines.accumulator import ProducerBatch
from semel.client.machines.types import Failure, TopicPartition
from semel.wire.errors import ErrorCode, ErrorKind

_NEVER = (-1.0, ErrorCode.NONE, "")


class Refusals:
    def __init__(self) -> None:
        self._last: dict[TopicPartition, tuple[float, ErrorCode, str]] = {}

    def note(self, partition: TopicPartition, now_ms: float, code: ErrorCode, why: str) -> None:
        self._last[partition] = now_ms, code, why

    def too_late(self, batch: ProducerBatch, timeout_ms: int) -> Failure:
        """Names a refusal only if it came while the batch waited."""
        what = f"a batch for {batch.partition} was not delivered within {timeout_ms} ms"
        refused_ms, code, why = self._last.get(batch.partition, _NEVER)
        if refused_ms < batch.created_ms:
            return Failure(ErrorKind.RETRIABLE, what, ErrorCode.REQUEST_TIMED_OUT)
        return Failure(ErrorKind.RETRIABLE, f"{what} ({why})", code)
