"""Partition state as bytes: producer snapshots and the aborted-transaction index, as in Kafka.

A `.snapshot` is Kafka's ProducerSnapshot version 1, which keeps only a producer's last batch, and
not even that one's own timestamp once a marker followed.
The whole five-batch window follows behind it, under the same CRC: Kafka reads its part, checks the
CRC over all and ignores the rest, so its tools and brokers take our files and we take theirs.
"""

import struct
from collections.abc import Iterable, Iterator

from semel.core.partition.producers import BatchMetadata, ProducerEntry, Producers
from semel.core.partition.stability import AbortedTransaction, Stability
from semel.wire.batches import advance_sequence
from semel.wire.checksum import crc32c

VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
# Names our addition, so that anything else found behind Kafka's part is left alone.
WINDOW_TAG = b"semel-window-1"
_WINDOW = struct.Struct(">qb")
_BATCH = struct.Struct(">iiqqq")

_ABORTED = struct.Struct(">hqqqq")
ABORTED_VERSION = 0


class CorruptSnapshot(Exception):
    """The bytes are not a producer snapshot, or were damaged: replay the log from further back."""


def encode_producers(producers: Producers) -> bytes:
    out = bytearray(_HEAD.size) + _COUNT.pack(len(producers))
    for producer_id, producer in producers.items():
        out += _entry(producer_id, producer)
    out += WINDOW_TAG
    for producer_id, producer in producers.items():
        if producer.batches:
            out += _WINDOW.pack(producer_id, len(producer.batches))
            for batch in producer.batches:
                out += _BATCH.pack(*batch)
    _HEAD.pack_into(out, 0, VERSION, crc32c(memoryview(out)[_HEAD.size :]))
    return bytes(out)


def decode_producers(content: bytes, now_ms: int) -> tuple[Producers, Stability]:
    """The producers and the transactions they had open; every producer counts as seen now."""
    try:
        version, crc = _HEAD.unpack_from(content, 0)
        (count,) = _COUNT.unpack_from(content, _HEAD.size)
    except struct.error as error:
        raise CorruptSnapshot(f"a snapshot of {len(content)} bytes is too short") from error
    if version != VERSION:
        raise CorruptSnapshot(f"a snapshot of version {version} is not known")
    if crc32c(memoryview(content)[_HEAD.size :]) != crc:
        raise CorruptSnapshot("the snapshot's checksum is wrong")
    entries_end = _HEAD.size + _COUNT.size + count * _ENTRY.size
    if count < 0 or entries_end > len(content):
        raise CorruptSnapshot(f"the snapshot declares {count} producers, but ends before them")
    producers = Producers()
    for fields in _ENTRY.iter_unpack(content[_HEAD.size + _COUNT.size : entries_end]):
        producer_id, producer = _producer(fields, now_ms)
        producers[producer_id] = producer
    _restore_windows(producers, content, entries_end)
    return producers, _open_transactions(producers)


def encode_aborted(entry: AbortedTransaction) -> bytes:
    """One entry of a `.txnindex` (Kafka's AbortedTxn)."""
    return _ABORTED.pack(ABORTED_VERSION, *entry)


def decode_aborted(content: bytes) -> Iterator[AbortedTransaction]:
    """All whole entries; a torn last one is left out."""
    whole = len(content) - len(content) % _ABORTED.size
    for _version, *fields in _ABORTED.iter_unpack(content[:whole]):
        yield AbortedTransaction(*fields)


def encode_aborted_index(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(encode_aborted(entry) for entry in entries)


def _entry(producer_id: int, producer: ProducerEntry) -> bytes:
    last = producer.batches[-1] if producer.batches else BatchMetadata(-1, -1, -1, -1, -1)
    return _ENTRY.pack(
        producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.last_offset - last.base_offset,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.open_since_offset,
    )


def _producer(fields: tuple[int, ...], now_ms: int) -> tuple[int, ProducerEntry]:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, *transaction = fields
    producer = ProducerEntry()
    producer.epoch = epoch
    producer.last_timestamp = timestamp
    producer.coordinator_epoch, producer.open_since_offset = transaction
    producer.seen_ms = now_ms
    if last_offset >= 0:
        base_sequence = advance_sequence(last_sequence, -delta) if last_sequence >= 0 else -1
        batch = BatchMetadata(
            base_sequence, last_sequence, last_offset - delta, last_offset, timestamp
        )
        producer.restore((batch,))
    return producer_id, producer


def _restore_windows(producers: Producers, content: bytes, position: int) -> None:
    """A snapshot written by Kafka itself has none: its producers remember one batch each."""
    if content[position : position + len(WINDOW_TAG)] != WINDOW_TAG:
        return
    position += len(WINDOW_TAG)
    while position < len(content):
        producer_id, count = _WINDOW.unpack_from(content, position)
        position += _WINDOW.size
        end = position + count * _BATCH.size
        producer = producers.get(producer_id)
        assert producer is not None, "a window without its producer under a valid checksum"
        producer.restore(tuple(map(BatchMetadata._make, _BATCH.iter_unpack(content[position:end]))))
        position = end


def _open_transactions(producers: Producers) -> Stability:
    stability = Stability()
    by_offset = sorted(
        (producer.open_since_offset, producer_id)
        for producer_id, producer in producers.items()
        if producer.has_open_transaction
    )
    for first_offset, producer_id in by_offset:
        stability.open(producer_id, first_offset)
    return stability
