"""What a task hands over: encoded record batches, inside its commit message or in a staged file."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage

from semel.columnar.encode import Body
from semel.errors import RefusedError
from semel.spark.format.files import files_at
from semel.spark.sink.sending import Deferred, Packed
from semel.wire.compression import Buffer

_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """One record batch without its header, which needs the producer id and a sequence."""

    topic: str
    partition: int | None
    count: int
    base_ms: int
    max_ms: int
    size: int
    records: bytes | None
    """None if it is staged, behind those before it."""

    def body(self, partition: int) -> Body:
        return Body(self.topic, partition, _NOTHING, self.count, self.base_ms, self.max_ms)


@dataclass(frozen=True)
class TaskMessage(WriterCommitMessage):
    """All rows of one task."""

    partition: int
    attempt: int
    query_id: str | None
    run_id: str | None
    rows: int
    batches: tuple[EncodedBatch, ...]
    staged: str | None = None
    """Where the file is, if there is one."""

    @property
    def staged_bytes(self) -> int:
        return sum(batch.size for batch in self.batches) if self.staged else 0

    def loaders(self) -> Iterator[tuple[EncodedBatch, Callable[[Body], Packed | Deferred]]]:
        """Each batch, with what makes of its body something that can be sent."""
        if self.staged is None:
            for batch in self.batches:
                assert batch.records is not None
                yield batch, partial(_packed, batch.records)
            return
        file, offset = _open(self.staged, self.staged_bytes), 0
        for batch in self.batches:
            yield batch, partial(_deferred, file, offset, batch.size)
            offset += batch.size


class TaskOutput:
    """Gathers a task's batches: in memory while they are small, else in a file."""

    def __init__(self, directory: str, carried_bytes: int) -> None:
        self.staged: str | None = None
        self.batches: list[EncodedBatch] = []
        self._directory = directory
        self._carried_bytes = carried_bytes
        self._size = 0
        self._file: Any = None

    def add(self, body: Body, records: Buffer) -> None:
        size = len(records)
        self._size += size
        if self._file is None and self._size > self._carried_bytes:
            self._stage()
        kept = None if self._file is not None else bytes(records)
        if self._file is not None:
            self._file.write(records)
        self.batches.append(
            EncodedBatch(
                body.topic, body.partition, body.count, body.base_ms, body.max_ms, size, kept
            )
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        self.close()
        if self.staged is not None:
            files, path = files_at(self.staged)
            with contextlib.suppress(OSError):
                files.delete_file(path)

    def _stage(self) -> None:
        files, root = files_at(self._directory)
        files.create_dir(root, recursive=True)
        name = uuid.uuid4().hex
        self._file = files.open_output_stream(f"{root}/{name}")
        self.staged = f"{self._directory}/{name}"
        carried, self.batches = self.batches, []
        for batch in carried:
            self._file.write(batch.records)
            self.batches.append(_without_records(batch))


def _without_records(batch: EncodedBatch) -> EncodedBatch:
    return EncodedBatch(
        batch.topic, batch.partition, batch.count, batch.base_ms, batch.max_ms, batch.size, None
    )


def _open(location: str, expected: int) -> Any:
    files, path = files_at(location)
    try:
        file = files.open_input_file(path)
    except OSError as error:
        raise RefusedError(
            f"what a task has staged in {location} is not there ({error}): stagingLocation must be"
            " a directory that the driver and all executors share"
        ) from error
    if file.size() != expected:
        raise RefusedError(
            f"what a task has staged in {location} is {file.size()} bytes long, not {expected}:"
            " nothing of this batch was written"
        )
    return file


def _packed(records: bytes, body: Body) -> Packed:
    return Packed(body, records)


def _deferred(file: Any, offset: int, size: int, body: Body) -> Deferred:
    return Deferred(body, lambda: memoryview(file.read_at(size, offset)))
