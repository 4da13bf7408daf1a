"""A partition's state from its log: the newest good snapshot, then every batch behind it."""

from __future__ import annotations

import logging

from semel.core.partition.snapshots import (
    CorruptSnapshot,
    decode_aborted,
    decode_producers,
    encode_aborted_index,
    encode_producers,
)
from semel.core.partition.stability import AbortedIndex, AbortedTransaction
from semel.core.partition.state import PartitionState
from semel.store.interface import Log
from semel.wire.batches import BatchHeader, parse_marker

logger = logging.getLogger("semel.partition")

SNAPSHOT = "snapshot"
TRANSACTION_INDEX = "txnindex"
SNAPSHOTS_KEPT = 2  # the newest may be damaged


def load_state(log: Log, now_ms: int) -> tuple[PartitionState, int]:
    """The state at the log's end, and the offset of the snapshot it was built on."""
    state = PartitionState()
    if log.offline is not None:
        return state, log.next_offset
    replay_from = _load_snapshot(log, state, now_ms)
    state.aborted = _load_aborted(log, replay_from)
    found: dict[int, list[AbortedTransaction]] = {}
    segments = [segment.base_offset for segment in log.segments()]
    for records in log.batches(replay_from):
        batch = BatchHeader(records)
        if not batch.has_producer:
            continue
        aborted = state.replay(batch, parse_marker(batch) if batch.is_control else None, now_ms)
        if aborted is not None:
            home = max(base for base in segments if base <= aborted.last_offset)
            found.setdefault(home, []).append(aborted)
    _write_aborted(log, state.aborted, found, replay_from)
    state.stability.durable_up_to(log.next_offset)
    return state, replay_from


def write_snapshot(log: Log, offset: int, state: PartitionState) -> None:
    """Snapshots stand at segment starts and at the end of a clean stop; older ones go."""
    log.write_side_file(offset, SNAPSHOT, encode_producers(state.producers))
    for old in log.side_files(SNAPSHOT)[:-SNAPSHOTS_KEPT]:
        log.delete_side_file(old, SNAPSHOT)


def _load_snapshot(log: Log, state: PartitionState, now_ms: int) -> int:
    # Recovery deletes the transaction indexes of what it scanned: the replay must cover that.
    newest = log.next_offset if log.recovered_from is None else log.recovered_from
    for offset in reversed(log.side_files(SNAPSHOT)):
        if not log.start_offset <= offset <= newest:
            continue
        content = log.read_side_file(offset, SNAPSHOT)
        try:
            state.producers, state.stability = decode_producers(content or b"", now_ms)
        except CorruptSnapshot as problem:
            logger.warning(
                "a producer snapshot is damaged; reading more of the log instead",
                extra={"partition": f"{log.topic}-{log.partition}", "problem": str(problem)},
            )
            log.delete_side_file(offset, SNAPSHOT)
            continue
        return offset
    return log.start_offset


def _load_aborted(log: Log, below: int) -> AbortedIndex:
    """The entries whose markers lie before the replay: the replay finds the others itself."""
    index = AbortedIndex()
    for segment in log.side_files(TRANSACTION_INDEX):
        for entry in decode_aborted(log.read_side_file(segment, TRANSACTION_INDEX) or b""):
            if log.start_offset <= entry.last_offset < below:
                index.add(entry)
    return index


def _write_aborted(
    log: Log,
    index: AbortedIndex,
    found: dict[int, list[AbortedTransaction]],
    replayed_from: int,
) -> None:
    """Put the index files of the replayed segments back to what the replay found: a crash may have
    lost an entry, or left one whose marker is gone."""
    if replayed_from == log.next_offset:
        return
    there = set(log.side_files(TRANSACTION_INDEX))
    for segment in log.segments():
        base = segment.base_offset
        if segment.next_offset <= replayed_from or base not in there | found.keys():
            continue
        kept = (entry for entry in index if base <= entry.last_offset < replayed_from)
        entries = [*kept, *found.get(base, ())]
        log.write_side_file(base, TRANSACTION_INDEX, encode_aborted_index(entries))
