"""Record batches of format 2: the 61-byte header as a view, records, building, transaction markers.

The broker reads headers only; `records_of` is for clients, compaction and the coordinators' own
logs, and counts what it decodes (`decoded_records`), so that a test can hold the hot paths to zero.
"""

from semel.wire.batches.builder import BatchBuilder, build_few, encode_record
from semel.wire.batches.header import (
    HEADER_SIZE,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Attribute,
    BatchHeader,
    OldFormatError,
    advance_sequence,
    header_at,
    header_before,
    headers,
    patch,
    replace_body,
    restamp,
    stamp_append_time,
    verify_crc,
    write_header,
)
from semel.wire.batches.markers import ControlType, Marker, control_batch, parse_marker
from semel.wire.batches.records import (
    Header,
    Record,
    body_of,
    check_lengths,
    decoded_records,
    record_chunks,
    records_of,
)

__all__ = [
    "HEADER_SIZE",
    "NO_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "Attribute",
    "BatchBuilder",
    "BatchHeader",
    "ControlType",
    "Header",
    "Marker",
    "OldFormatError",
    "Record",
    "advance_sequence",
    "body_of",
    "build_few",
    "check_lengths",
    "control_batch",
    "decoded_records",
    "encode_record",
    "header_at",
    "header_before",
    "headers",
    "parse_marker",
    "patch",
    "record_chunks",
    "records_of",
    "replace_body",
    "restamp",
    "stamp_append_time",
    "verify_crc",
    "write_header",
]
