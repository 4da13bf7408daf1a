"""A log written by transactional producers, and what readers of both kinds see in it.

Built from the real parts: the disk's log, the partition's state, its aborted-transaction index. For
tests of compaction and recovery, which must not change what a reader sees.
"""

from collections.abc import Iterable

from semel.core.partition.compaction import CompactionPolicy
from semel.core.partition.snapshots import decode_aborted, encode_aborted
from semel.core.partition.stability import AbortedIndex, AbortedTransaction
from semel.core.partition.state import PartitionState
from semel.store.cleanable import measure
from semel.store.compaction import Compacted, compact
from semel.store.disk import DiskLog
from semel.store.interface import NO_LIMIT
from semel.wire.batches import (
    BatchBuilder,
    BatchHeader,
    Record,
    control_batch,
    parse_marker,
    records_of,
)
from semel.wire.compression import Compression

Pair = tuple[bytes | None, bytes | None]


class TransactionalLog:
    """Writes as a partition does, so that state and index are those of a real one."""

    def __init__(self, log: DiskLog) -> None:
        self.log = log
        self.state = PartitionState()
        self.sequences: dict[int, int] = {}
        self.now_ms = 1_000

    def write(
        self,
        pairs: Iterable[Pair],
        producer_id: int = -1,
        transactional: bool = False,
        compression: Compression = Compression.NONE,
        epoch: int = 0,
    ) -> None:
        """One batch of key and value pairs."""
        builder = BatchBuilder(compression)
        size = 0
        for key, value in pairs:
            builder.append(key, value, self.now_ms + size)
            size += 1
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        self.sequences[producer_id] = sequence + size
        batch = builder.build(
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
            base_offset=self.log.next_offset,
            leader_epoch=0,
        )
        assert self.log.append([batch]).durable
        self.state.replay(BatchHeader(batch), None, self.now_ms)
        self.now_ms += 10

    def end(self, producer_id: int, commit: bool, epoch: int = 0) -> None:
        """The marker that ends a producer's transaction."""
        batch = control_batch(
            producer_id=producer_id,
            producer_epoch=epoch,
            commit=commit,
            coordinator_epoch=0,
            timestamp=self.now_ms,
            base_offset=self.log.next_offset,
            leader_epoch=0,
        )
        assert self.log.append([batch]).durable
        header = BatchHeader(batch)
        entry = self.state.replay(header, parse_marker(header), self.now_ms)
        if entry is not None:
            base = self.log.segments()[-1].base_offset
            self.log.append_side_file(base, "txnindex", encode_aborted(entry))
        self.now_ms += 10

    @property
    def aborted(self) -> list[AbortedTransaction]:
        return list(self.state.aborted)

    @property
    def last_stable_offset(self) -> int:
        first_open = self.state.stability.first_open_offset()
        return self.log.next_offset if first_open is None else first_open

    def compact(self, now_ms: int | None = None, map_bytes: int = 64 << 20) -> Compacted:
        now_ms = self.now_ms if now_ms is None else now_ms
        policy = self.policy()
        section = measure(
            self.log.segments(),
            self.log.config,
            self.log.cleaned_to,
            self.log.start_offset,
            self.last_stable_offset,
            now_ms,
        )
        return compact(self.log, policy, section, now_ms, map_bytes)

    def policy(self) -> CompactionPolicy:
        return CompactionPolicy(self.state)

    def reload(self, log: DiskLog) -> None:
        """What an owner does after a restart: replay, and trust the index that is vouched for."""
        self.log = log
        self.state = PartitionState()
        trusted = log.next_offset if log.recovered_from is None else log.recovered_from
        entries = [
            entry
            for base in log.side_files("txnindex")
            if base < trusted
            for entry in decode_aborted(log.read_side_file(base, "txnindex") or b"")
        ]
        for batch in self.batches():
            marker = parse_marker(batch) if batch.is_control else None
            entry = self.state.replay(batch, marker, self.now_ms)
            if entry is not None and entry.last_offset >= trusted:
                entries.append(entry)
        self.state.aborted = AbortedIndex()
        for entry in sorted(entries, key=lambda entry: entry.last_offset):
            self.state.aborted.add(entry)

    # Readers

    def batches(self) -> list[BatchHeader]:
        return [BatchHeader(data) for data in self.log.batches(self.log.start_offset)]

    def committed(self, offset: int | None = None) -> list[Record]:
        """What a read_committed consumer delivers that begins at `offset`."""
        offset = self.log.start_offset if offset is None else offset
        batches = [BatchHeader(data) for data in self.log.batches(offset)]
        aborted = [entry for entry in self.aborted if entry.last_offset >= offset]
        records = read_committed(batches, aborted, self.last_stable_offset)
        return [record for record in records if record.offset >= offset]

    def latest(self) -> dict[bytes, bytes]:
        """The table that the log stands for: the last committed value of every key."""
        return table(self.committed())


def read_committed(
    batches: Iterable[BatchHeader], aborted: Iterable[AbortedTransaction], limit: int = NO_LIMIT
) -> list[Record]:
    """As a consumer filters: a producer is aborting from an entry's first offset to its marker."""
    coming = sorted(aborted, key=lambda entry: entry.first_offset)
    aborting: set[int] = set()
    seen: list[Record] = []
    for batch in batches:
        if batch.base_offset >= limit:
            break
        while coming and coming[0].first_offset <= batch.last_offset:
            aborting.add(coming.pop(0).producer_id)
        if batch.is_control:
            marker = parse_marker(batch)
            if marker is not None and not marker.is_commit:
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            seen += records_of(batch)
    return seen


def table(records: Iterable[Record]) -> dict[bytes, bytes]:
    values: dict[bytes, bytes] = {}
    for record in records:
        if record.key is None:
            continue
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value
    return values
