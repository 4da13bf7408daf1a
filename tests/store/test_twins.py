"""The short append and the long one leave the same log: in memory, on disk, and for readers."""

import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from semel.store.directory import DiskStore
from semel.store.interface import LogConfig
from semel.wire.batches import BatchHeader

ID = UUID(int=7)
FIELDS = (
    "base_offset", "first_timestamp", "indexed_at", "index_is_full", "max_timestamp",
    "max_timestamp_offset", "next_offset", "size",
)  # fmt: skip

configs = st.builds(
    LogConfig,
    segment_bytes=st.sampled_from([300, 1000, 1 << 20]),
    segment_ms=st.sampled_from([5, 50, 10_000]),
    segment_index_bytes=st.sampled_from([24, 10 << 20]),
    index_interval_bytes=st.sampled_from([0, 100, 1000]),
)
batches = st.lists(
    st.tuples(st.integers(1, 3), st.integers(-1, 60), st.integers(0, 200)), max_size=25
)


@settings(max_examples=60)
@given(configs, batches)
def test_easy_appends_leave_what_others_would(
    batch: Any, config: LogConfig, batches: list[tuple[int, int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        short, long = (DiskStore(where, clock=lambda: 1_000) for where in (one, other))
        ours, theirs = (store.create("t", 0, ID, config) for store in (short, long))
        for count, timestamp, size in batches:
            made = batch(ours.next_offset, count, timestamp=timestamp, value=b"v" * size)
            header = BatchHeader(made)
            ours.append_next(made, header.last_offset, header.max_timestamp)
            theirs.append([made])
            assert [facts(segment) for segment in ours._segments] == [
                facts(segment) for segment in theirs._segments
            ]
        for offset in range(ours.next_offset):
            assert bytes(ours.read(offset, 500)) == bytes(theirs.read(offset, 500))
        short.close()
        long.close()
        assert contents(one) == contents(other)


def facts(segment: Any) -> list[Any]:
    return [getattr(segment, name) for name in FIELDS]


def contents(where: str) -> dict[str, bytes]:
    root = Path(where)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
