"""Which records of an opened batch are at fault, in the words of Kafka's LogValidator (KIP-467).

Clients fail the records that are named with what is said of them, and tell the others of the same
batch that they failed because of those (librdkafka, Java's ProducerBatch).
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from semel.core.partition.admission import BatchLimits, RecordFault, Refusal
from semel.wire.batches import NO_TIMESTAMP, Record
from semel.wire.errors import ErrorCode

#: No answer names more: as many as librdkafka puts into a batch, and a megabyte of answer.
MOST_NAMED = 10_000


def record_refusal(
    records: Iterable[Record], limits: BatchLimits, now_ms: int, needs_keys: bool, where: object
) -> Refusal | None:
    """The reason to refuse a batch that consists of `records`, or None."""
    times = [now_ms - limits.timestamp_before_max_ms, now_ms + limits.timestamp_after_max_ms]
    bounds = None if limits.log_append_time else times
    found = list(islice(_faults(records, bounds, needs_keys, where), MOST_NAMED))
    if not found:
        return None
    faults = tuple(fault for _, fault in found)
    if any(error is ErrorCode.INVALID_TIMESTAMP for error, _ in found):
        message = "One or more records have been rejected due to invalid timestamp"
        return Refusal(ErrorCode.INVALID_TIMESTAMP, message, faults)
    shown = ", ".join(
        f"RecordError(batchIndex={fault.number}, message='{fault.message}')" for fault in faults[:3]
    )
    message = (
        f"One or more records have been rejected due to {len(faults)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    return Refusal(ErrorCode.INVALID_RECORD, message, faults)


def _faults(
    records: Iterable[Record], bounds: list[int] | None, needs_keys: bool, where: object
) -> Iterator[tuple[ErrorCode, RecordFault]]:
    keyless = f"Compacted topic cannot accept message without key in topic partition {where}"
    for index, record in enumerate(records):
        if needs_keys and record.key is None:
            yield ErrorCode.INVALID_RECORD, RecordFault(index, keyless)
        elif bounds is not None and not _is_within(record.timestamp, *bounds):
            yield (
                ErrorCode.INVALID_TIMESTAMP,
                RecordFault(
                    index,
                    f"Timestamp {record.timestamp} of message with offset {index} is out of range. "
                    f"The timestamp should be within {bounds}",
                ),
            )


def _is_within(timestamp: int, earliest: int, latest: int) -> bool:
    return earliest <= timestamp <= latest or timestamp == NO_TIMESTAMP
