"""Transaction markers: control batches that say how a transaction ended in a partition."""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from semel.wire.batches.builder import encode_record
from semel.wire.batches.header import (
    CRC_COVERED,
    NO_EPOCH,
    NO_SEQUENCE,
    Attribute,
    BatchHeader,
    batch_of,
)
from semel.wire.batches.records import Record, records_of
from semel.wire.errors import ProtocolError

_KEY = Struct(">hh")  # version, control type
_END_TRANSACTION_MARKER = Struct(">hi")  # version, coordinator epoch
_VERSION = 0


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1


def _record_before_epoch(type_: ControlType) -> bytes:
    """A marker's record differs in its coordinator epoch alone, which is followed by a zero: it has
    no headers."""
    value = _END_TRANSACTION_MARKER.pack(_VERSION, 0)
    record = encode_record(Record(0, 0, _KEY.pack(_VERSION, type_), value), 0, 0)
    return record[:-5]


_COMMIT_RECORD = _record_before_epoch(ControlType.COMMIT)
_ABORT_RECORD = _record_before_epoch(ControlType.ABORT)
_MARKER = Struct(f"{CRC_COVERED}{len(_COMMIT_RECORD)}six")
_MARKER_ATTRIBUTES = int(Attribute.TRANSACTIONAL | Attribute.CONTROL)


class Marker(NamedTuple):
    """The end of a transaction, as `parse_marker` finds it in a partition."""

    producer_id: int
    producer_epoch: int
    type: ControlType
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        return self.type is ControlType.COMMIT


def control_batch(
    *,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytearray:
    """A batch of one record: the marker that Kafka's EndTransactionMarker writes. Packed at once;
    its twin is `BatchBuilder` with the same record."""
    covered = _MARKER.pack(
        _MARKER_ATTRIBUTES,
        0,
        timestamp,
        timestamp,
        producer_id,
        producer_epoch,
        NO_SEQUENCE,
        1,
        _COMMIT_RECORD if commit else _ABORT_RECORD,
        coordinator_epoch,
    )
    return batch_of(covered, base_offset, leader_epoch)


def parse_marker(batch: BatchHeader) -> Marker | None:
    """The marker in a control batch; None for control records of another type (as Raft's)."""
    if not batch.is_control:
        raise ProtocolError("a batch of data is not a marker")
    records = records_of(batch)
    if not records:  # compaction keeps the header of a producer's last batch, emptied
        return None
    key, value = records[0].key, records[0].value
    if key is None or len(key) < _KEY.size:
        raise ProtocolError("a control record needs a key of version and type")
    version, type_ = _KEY.unpack_from(key)
    if version < 0:
        raise ProtocolError(f"control record version {version}")
    if type_ not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if value is None or len(value) < _END_TRANSACTION_MARKER.size:
        raise ProtocolError("a transaction marker needs a value of version and coordinator epoch")
    coordinator_epoch = _END_TRANSACTION_MARKER.unpack_from(value)[1]
    return Marker(batch.producer_id, batch.producer_epoch, ControlType(type_), coordinator_epoch)
