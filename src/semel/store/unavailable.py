"""A log that the disk would not give us: empty and offline, until it can be opened."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from semel.store.interface import (
    NO_LIMIT,
    Buffer,
    Log,
    LogConfig,
    Region,
    SegmentInfo,
    StorageError,
    Ticket,
)
from semel.wire.batches import BatchHeader


class UnavailableLog(Log):
    """Stands in the place of a log and refuses everything, for the reason that it is given."""

    size = 0
    epochs: list[tuple[int, int]] = []  # noqa: RUF012  (never changed)

    def __init__(
        self, topic: str, partition: int, topic_id: UUID, config: LogConfig, why: StorageError
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.offline: StorageError = why
        self.recovered_from = None
        self.start_offset = self.next_offset = 0

    def append(self, batches: Sequence[Buffer]) -> Ticket:
        return Ticket(error=self.offline)

    def sync(self) -> Ticket:
        return Ticket(error=self.offline)

    def read(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int = NO_LIMIT,
        at_least_one: bool = True,
    ) -> Region:
        raise self.offline

    def truncate(self, offset: int) -> None:
        raise self.offline

    def truncate_fully(self, offset: int) -> None:
        raise self.offline

    def delete_below(self, offset: int) -> int:
        raise self.offline

    def retain(self, now_ms: int, limit_offset: int = NO_LIMIT) -> int:
        raise self.offline

    def roll(self) -> int:
        raise self.offline

    def segments(self) -> list[SegmentInfo]:
        raise self.offline

    def batches_at_or_after(self, timestamp: int, limit_offset: int) -> Iterator[BatchHeader]:
        raise self.offline

    def largest_timestamp(self) -> int | None:
        raise self.offline

    def side_files(self, suffix: str) -> list[int]:
        return []

    def read_side_file(self, offset: int, suffix: str) -> bytes | None:
        return None

    def write_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        raise self.offline

    def append_side_file(self, offset: int, suffix: str, content: bytes) -> None:
        raise self.offline

    def delete_side_file(self, offset: int, suffix: str) -> None:
        raise self.offline

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        raise self.offline
