"""Batches and a small log to try the partition's rules on."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from semel.core.partition.admission import Refusal
from semel.core.partition.state import PartitionState
from semel.wire.batches import (
    BatchBuilder,
    BatchHeader,
    ControlType,
    Marker,
    control_batch,
    header_at,
    parse_marker,
    patch,
)

MakeBatch = Callable[..., BatchHeader]


def build_batch(
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    count: int = 1,
    transactional: bool = False,
    timestamp: int = 1_000,
) -> BatchHeader:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(b"key", b"value %d" % number, timestamp)
    built = builder.build(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return header_at(built)


@dataclass
class SmallLog:
    """A partition without a store: looks, appends to a list, applies."""

    state: PartitionState = field(default_factory=PartitionState)
    batches: list[bytes] = field(default_factory=list)
    next_offset: int = 0

    def send(self, batch: BatchHeader, begins_at_zero: bool = False) -> object:
        """The verdict, with every verification answered by yes; None if it was appended."""
        guard = None
        if batch.is_transactional:
            asked = self.state.ask_verification(batch, begins_at_zero, now_ms=0)
            if isinstance(asked, tuple):
                return asked
            guard = asked
        verdict = self.state.look_batch(batch, guard)
        if verdict is None:
            patch(batch, self.next_offset, 0)
            self.state.apply_batch(batch, now_ms=0)
            self.batches.append(bytes(batch.view))
            self.next_offset = batch.next_offset
        return verdict

    def end(
        self,
        producer_id: int,
        epoch: int,
        commit: bool,
        coordinator_epoch: int = 0,
        version: int = 1,
    ) -> object:
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        marker = Marker(producer_id, epoch, kind, coordinator_epoch)
        verdict = self.state.look_marker(marker, version)
        if verdict is None:
            self.batches.append(
                bytes(
                    control_batch(
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        commit=commit,
                        coordinator_epoch=coordinator_epoch,
                        timestamp=2_000,
                        base_offset=self.next_offset,
                    )
                )
            )
            self.state.apply_marker(marker, self.next_offset, 2_000, now_ms=0)
            self.next_offset += 1
        return verdict

    def error_of(self, batch: BatchHeader, begins_at_zero: bool = False) -> str:
        verdict = self.send(batch, begins_at_zero)
        assert isinstance(verdict, Refusal), verdict
        return verdict.error.name


def replay_all(batches: list[bytes], state: PartitionState | None = None) -> PartitionState:
    state = state or PartitionState()
    for batch in batches:
        header = header_at(batch)
        state.replay(header, parse_marker(header) if header.is_control else None, now_ms=99)
    return state


@pytest.fixture(scope="session")
def make_batch() -> MakeBatch:
    return build_batch


@pytest.fixture
def log() -> SmallLog:
    return SmallLog()


@pytest.fixture(scope="session")
def new_log() -> type[SmallLog]:
    return SmallLog


@pytest.fixture(scope="session")
def replay() -> Callable[..., PartitionState]:
    return replay_all
