"""What the store's tests share: batches by the dozen, and a clock that a test sets."""

from collections.abc import Callable

import pytest

from semel.wire.batches import BatchBuilder, BatchHeader, records_of


def make_batch(offset, count=1, *, timestamp=1_000, value=b"v" * 20, key=b"k", epoch=0, **producer):
    builder = BatchBuilder()
    for number in range(count):
        builder.append(key, value, timestamp + number)
    return builder.build(base_offset=offset, leader_epoch=epoch, **producer)


def offsets_in(region) -> list[int]:
    """The offset of every record in a region."""
    data = bytes(region)
    found, position = [], 0
    while position < len(data):
        batch = BatchHeader(data, position)
        found += [record.offset for record in records_of(batch)]
        position += batch.size
    return found


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def batch() -> Callable[..., bytearray]:
    return make_batch


@pytest.fixture
def offsets() -> Callable[..., list[int]]:
    return offsets_in
