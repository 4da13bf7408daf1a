"""The one place where the broker opens a client's batch before it is stored.

A compressed batch is unpacked once, to see that its readers can: it holds as many records as it
declares, within bounds. A compacted topic refuses records without a key, as Kafka does; a topic
with a `compression.type` of its own stores batches in that one. All other batches pass unopened.

Small batches are opened where they are. Large ones, and those that unpack to much, are opened by
one thread: there, never more than one body is in memory, and the loop goes on. One whose timestamps
are refused is looked into afterwards, to name the records at fault.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from semel.broker.settings.definitions import Value
from semel.core.partition.admission import COMPRESSION, BatchLimits, Refusal
from semel.core.partition.record_faults import MOST_NAMED, record_refusal
from semel.wire.batches import (
    BatchHeader,
    Record,
    body_of,
    check_lengths,
    record_chunks,
    records_of,
    replace_body,
)
from semel.wire.compression import Compression, compress
from semel.wire.errors import ErrorCode, ProtocolError

if TYPE_CHECKING:
    from semel.broker.partitions.partition import Partition

#: How far a batch may unpack, and how many records a compressed one may have. Clients make batches
#: of some megabytes and some ten thousand records.
MOST_BYTES = 64 << 20
MOST_RECORDS = 1_000_000
#: What is opened at once, on the loop: tens of microseconds.
SMALL_BATCH, SMALL_COUNT, SMALL_BODY = 4_096, 100, 1 << 16
#: How far a batch that is refused anyway may unpack.
NAMING_LIMIT = 4 << 20
#: Records that are looked at before the other threads of the process have their turn.
CHUNK = 500
#: Beside the attributes of a batch: its partition opens it whatever they are.
OPENS = 1 << 16
MUST_OPEN = OPENS | COMPRESSION

Opened = BatchHeader | Refusal
T = TypeVar("T")


class Recoding(NamedTuple):
    """What a topic wants of its batches; None and False want nothing."""

    codec: Compression | None
    needs_keys: bool

    @classmethod
    def of(cls, config: Mapping[str, Value]) -> Recoding:
        name = config["compression.type"]
        if name == "producer":
            codec = None
        else:
            codec = Compression.named("none" if name == "uncompressed" else name)
        return cls(codec, "compact" in config["cleanup.policy"])

    @property
    def wants_any(self) -> bool:
        return self.needs_keys or self.codec is not None

    def apply(
        self, batch: BatchHeader, limits: BatchLimits, now_ms: int, where: object, limit: int
    ) -> Opened:
        """The batch as the topic wants it, or why it cannot be. Raises ProtocolError if it cannot
        be read, or unpacks to more than `limit` bytes."""
        body = body_of(batch, limit)
        if batch.compression:
            check_lengths(body, batch.count, _let_others_run, CHUNK)
        if self.needs_keys:
            refused = record_refusal(_records(batch, body), limits, now_ms, True, where)
            if refused is not None:
                return refused
        if self.codec is None or batch.compression == self.codec:
            return batch
        recoded = replace_body(batch, compress(self.codec, body), self.codec)
        if recoded.size > limits.max_message_bytes:
            return _too_large(recoded, self.codec, limits)
        return recoded

    def name_records(
        self, refusal: Refusal, batch: BatchHeader, limits: BatchLimits, now_ms: int, where: object
    ) -> Refusal:
        """A refusal of timestamps by the header, with the records at fault if they are few enough
        to be looked at: the batch is refused either way, and must not cost more than a good one."""
        if batch.count > MOST_NAMED:
            return refusal
        try:
            records = records_of(batch, NAMING_LIMIT)
        except ProtocolError:
            return refusal
        return record_refusal(records, limits, now_ms, self.needs_keys, where) or refusal


def is_small(batch: BatchHeader) -> bool:
    return batch.size <= SMALL_BATCH and batch.count <= SMALL_COUNT


class Opener:
    """The thread in which large batches are opened, one after the other."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    def open_all(
        self, writes: Sequence[tuple[Partition, BatchHeader]], now_ms: int
    ) -> asyncio.Future[list[Opened]]:
        return self.run(lambda: [partition.opened(batch, now_ms) for partition, batch in writes])

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "semel-open")
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)


def _records(batch: BatchHeader, body: bytes) -> Iterator[Record]:
    return chain.from_iterable(_paused(record_chunks(batch, body, CHUNK)))


def _paused(chunks: Iterable[list[Record]]) -> Iterator[list[Record]]:
    for chunk in chunks:
        yield chunk
        _let_others_run()


def _let_others_run() -> None:
    """Python's threads run one at a time, for five milliseconds each unless they offer to stop."""
    time.sleep(0)


def unreadable(problem: ProtocolError) -> Refusal:
    return Refusal(ErrorCode.INVALID_RECORD, f"The records cannot be read: {problem}.")


def _too_large(batch: BatchHeader, codec: Compression, limits: BatchLimits) -> Refusal:
    return Refusal(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The batch has {batch.size} bytes with the topic's compression ({codec.name.lower()}),"
        f" max.message.bytes is {limits.max_message_bytes}.",
    )


def too_many(batch: BatchHeader) -> Refusal | None:
    """Judged by the header: nothing of it is unpacked."""
    if batch.count <= MOST_RECORDS or not batch.compression:
        return None
    return Refusal(
        ErrorCode.INVALID_RECORD,
        f"The batch declares {batch.count} records; a compressed one may have {MOST_RECORDS}.",
    )
