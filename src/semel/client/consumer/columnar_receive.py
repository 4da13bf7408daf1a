"""Receiving Arrow tables: fetched batches are decoded by the kernels, without an object a record.

The same batches are shown as to a poll: no markers, and nothing aborted with read_committed.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from semel.client.consumer.fetcher import Fetcher
from semel.client.machines.types import TopicPartition
from semel.columnar import kernels
from semel.columnar.decode import HEADERS_TYPE, to_columns
from semel.wire.batches import BatchHeader

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE, nullable=False),
    ]
)
_NO_LIMIT = (1 << 63) - 1


def take_tables(fetcher: Fetcher) -> list[pa.RecordBatch]:
    """Everything that was fetched; one answer only while the plain kernels take their time."""
    chosen = kernels.ready()

    def decode(
        partition: TopicPartition, position: int, batches: Iterable[BatchHeader]
    ) -> pa.RecordBatch:
        columns = to_columns(batches, position, _NO_LIMIT, True, chosen)
        arrays = [
            pa.repeat(pa.scalar(partition.topic, pa.string()), columns.count),
            pa.repeat(pa.scalar(partition.partition, pa.int32()), columns.count),
            columns.offsets,
            columns.timestamps_ms.view(SCHEMA.field("timestamp").type),
            columns.keys,
            columns.values,
            columns.headers,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    answers = fetcher.take_answers(1 if chosen is kernels.PLAIN else 1_000, decode)
    return [table for table in answers if table.num_rows]


def whole_table(tables: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(tables, SCHEMA)
