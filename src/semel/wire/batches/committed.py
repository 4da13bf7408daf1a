"""Which fetched batches count: whole ones with the right checksum, and none that was aborted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from semel.wire.batches.header import BatchHeader, headers, verify_crc
from semel.wire.batches.markers import ControlType, parse_marker
from semel.wire.compression import Buffer
from semel.wire.errors import ProtocolError


def fetched_batches(records: Buffer, check_crcs: bool = True) -> Iterator[BatchHeader]:
    """The whole batches of a Fetch answer, their checksums verified; a batch cut short at the end
    is left out.
    """
    for batch in headers(records, partial_tail=True):
        if check_crcs and not verify_crc(batch):
            raise ProtocolError(f"record batch at offset {batch.base_offset}: wrong checksum")
        yield batch


def committed_only(
    batches: Iterable[BatchHeader], aborted: Iterable[tuple[int, int]] | None
) -> Iterator[BatchHeader]:
    """Drop what was aborted, exactly: by producer id, from the transaction's first offset to its
    abort marker.

    `aborted` are the (producer id, first offset) pairs of one Fetch answer, as in Kafka's
    CompletedFetch. Control batches stay in: the caller learns from them how far it has read.
    """
    waiting = sorted(aborted or (), key=lambda entry: entry[1], reverse=True)
    aborting: set[int] = set()
    for batch in batches:
        while waiting and waiting[-1][1] <= batch.last_offset:
            aborting.add(waiting.pop()[0])
        if batch.is_control:
            marker = parse_marker(batch)
            if marker is not None and marker.type is ControlType.ABORT:
                aborting.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in aborting:
            continue
        yield batch
