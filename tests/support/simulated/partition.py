"""A simulated partition: the product's rules over a log that a crash cuts back to its last sync."""

from collections.abc import Callable

from semel.core.partition.admission import Refusal
from semel.core.partition.producers import Duplicate
from semel.core.partition.state import PartitionState
from semel.core.partition.verification import Guard
from semel.wire.batches import (
    BatchBuilder,
    BatchHeader,
    ControlType,
    Marker,
    control_batch,
    parse_marker,
    patch,
    records_of,
)
from semel.wire.errors import ErrorCode

Done = Callable[[ErrorCode], None]


class SimulatedPartition:
    def __init__(self, index: int) -> None:
        self.index = index
        self.state = PartitionState()
        self.log: list[bytes] = []
        self.durable = 0
        self.position = 0
        """Of a committed reader that never stops reading."""
        self.read: list[str] = []
        """What that reader has seen, in order."""
        self.stable_offset_seen = 0
        self._waiting: list[tuple[int, Done]] = []

    # Appending; offsets are positions in the log, because every batch holds one record

    def batch(self, producer_id: int, epoch: int, sequence: int, tag: str) -> BatchHeader:
        builder = BatchBuilder()
        builder.append(None, tag.encode(), 0)
        return BatchHeader(
            builder.build(
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                transactional=True,
            )
        )

    def append(self, batch: BatchHeader, guard: Guard | None, now_ms: int, done: Done) -> bool:
        """Whether the batch is new in the log. `done` hears when it is durable, or refused."""
        verdict = self.state.look_batch(batch, guard)
        if isinstance(verdict, Refusal):
            done(verdict.error)
            return False
        if isinstance(verdict, Duplicate):
            self._when_durable(verdict.batch.last_offset + 1, done)
            return False
        patch(batch, len(self.log), 0)
        self.log.append(bytes(batch.view))
        self.state.apply_batch(batch, now_ms)
        self._when_durable(len(self.log), done)
        return True

    def append_marker(self, marker: Marker, version: int, now_ms: int, done: Done) -> None:
        refusal = self.state.look_marker(marker, version)
        if refusal is not None:
            done(refusal.error)
            return
        offset = len(self.log)
        batch = control_batch(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            commit=marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
            base_offset=offset,
        )
        self.log.append(bytes(batch))
        self.state.apply_marker(marker, offset, now_ms, now_ms)
        self._when_durable(len(self.log), done)

    # The disk

    def sync(self) -> None:
        self.durable = len(self.log)
        self.state.stability.durable_up_to(self.durable)
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            done(ErrorCode.NONE)

    def crash(self, now_ms: int) -> None:
        """Everything that was not synced is gone, and so is everybody who waited for it."""
        del self.log[self.durable :]
        self._waiting.clear()
        replayed = PartitionState()
        for data in self.log:
            batch = BatchHeader(data)
            replayed.replay(batch, parse_marker(batch) if batch.is_control else None, now_ms)
        replayed.stability.durable_up_to(len(self.log))
        self.state = replayed

    def _when_durable(self, offset: int, done: Done) -> None:
        if offset <= self.durable:
            done(ErrorCode.NONE)
        else:
            self._waiting.append((offset, done))

    # Reading

    @property
    def last_stable_offset(self) -> int:
        return self.state.stability.last_stable_offset(self.durable)

    def read_committed(self) -> None:
        """Go on reading, as a consumer does: up to the last stable offset, without aborted data."""
        stable = self.last_stable_offset
        assert stable >= self.stable_offset_seen, "the last stable offset went back"
        self.stable_offset_seen = stable
        aborted = self.state.aborted.between(self.position, stable)
        for offset in range(self.position, stable):
            batch = BatchHeader(self.log[offset])
            if batch.is_control:
                continue
            if any(
                entry.producer_id == batch.producer_id
                and entry.first_offset <= offset <= entry.last_offset
                for entry in aborted
            ):
                continue
            value = records_of(batch)[0].value
            assert value is not None
            self.read.append(value.decode())
        self.position = max(self.position, stable)


def marker_of(producer_id: int, epoch: int, commit: bool, coordinator_epoch: int) -> Marker:
    outcome = ControlType.COMMIT if commit else ControlType.ABORT
    return Marker(producer_id, epoch, outcome, coordinator_epoch)
