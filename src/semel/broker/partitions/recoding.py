"""The one place where the broker opens a client's batch: compacted topics and other compressions.

A compacted topic refuses records without a key, as Kafka does; a topic with a `compression.type` of
its own stores batches in that one. Everywhere else batches pass unopened; one whose timestamps are
refused is looked into afterwards, to name the records at fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from semel.broker.settings.definitions import Value
from semel.core.partition.admission import BatchLimits, Refusal
from semel.core.partition.record_faults import MOST_NAMED, record_refusal
from semel.wire.batches import (
    HEADER_SIZE,
    BatchHeader,
    records_of,
    replace_body,
)
from semel.wire.compression import Compression, compress, decompress
from semel.wire.errors import ErrorCode, ProtocolError

#: How far a batch that is refused anyway may unpack.
NAMING_LIMIT = 16 * 1024 * 1024


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

    def wants(self, batch: BatchHeader) -> bool:
        return self.needs_keys or (self.codec is not None and batch.compression != self.codec)

    def apply(
        self, batch: BatchHeader, limits: BatchLimits, now_ms: int, where: object
    ) -> BatchHeader | Refusal:
        """The batch as the topic wants it, or why it cannot be."""
        try:
            if self.needs_keys:
                refused = record_refusal(records_of(batch), limits, now_ms, True, where)
                if refused is not None:
                    return refused
            if self.codec is None or batch.compression == self.codec:
                return batch
            body = decompress(batch.compression, batch.view[HEADER_SIZE:])
            return replace_body(batch, compress(self.codec, body), self.codec)
        except ProtocolError as problem:
            return Refusal(ErrorCode.INVALID_RECORD, f"The records cannot be read: {problem}.")

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
