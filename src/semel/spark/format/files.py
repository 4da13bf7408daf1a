"""Directories that the driver and the tasks share: the checkpoint, and where batches are staged.

Neither process has Spark's own file system at hand, so Arrow's are used: local paths, and what
`pyarrow.fs` knows by its URI (hdfs, s3, gs, abfs).
"""

from __future__ import annotations

import json
import logging
from typing import Any

from pyarrow import fs

from semel.errors import RefusedError
from semel.spark.query_batch import QueryBatch, origins

log = logging.getLogger(__name__)

_LOG_VERSION = "v1"
# Hadoop's names of what Arrow calls otherwise.
_SCHEMES = {"s3a://": "s3://", "s3n://": "s3://"}


def files_at(location: str) -> tuple[fs.FileSystem, str]:
    """The file system of a location, and the path in it."""
    for hadoop, arrow in _SCHEMES.items():
        location = location.replace(hadoop, arrow, 1) if location.startswith(hadoop) else location
    if location.startswith("file:"):
        location = "/" + location.removeprefix("file:").lstrip("/")
    if "://" not in location:
        return fs.LocalFileSystem(use_mmap=True), location.rstrip("/")
    try:
        found, path = fs.FileSystem.from_uri(location)
    except (ValueError, OSError) as error:
        raise RefusedError(
            f"{location} cannot be reached from Python ({error}): use the sink in foreachBatch"
        ) from error
    return found, path.rstrip("/")


def delete_directory(location: str) -> None:
    """A cleaning that fails is not worth a batch: the next start cleans again."""
    files, path = files_at(location)
    try:
        files.delete_dir(path)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("%s is left behind: %s", location, error)


def empty_directory(location: str, but: str | None) -> None:
    """Delete the directories in it, but one."""
    files, path = files_at(location)
    for found in files.get_file_info(fs.FileSelector(path, allow_not_found=True)):
        if found.base_name != but:
            delete_directory(f"{location}/{found.base_name}")


class Checkpoint:
    """What Spark has written about a query and its batches."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._files, self._root = files_at(location)

    def batch(self, number: int) -> QueryBatch:
        """The batch as the offset log knows it."""
        query_id = json.loads(self._read("metadata"))["id"]
        end, planned_ms = self._offsets(number)
        start = origins(end) if number == 0 else self._offsets(number - 1)[0]
        return QueryBatch(query_id, number, start, end, planned_ms)

    def _offsets(self, number: int) -> tuple[tuple[Any, ...], int]:
        """Spark's OffsetSeqLog: a version, metadata, and one line for each source."""
        version, metadata, *offsets = self._read(f"offsets/{number}").splitlines()
        if version != _LOG_VERSION:
            raise RefusedError(
                f"the offset log of {self._location} has format {version}, not {_LOG_VERSION}: set"
                " spark.sql.streaming.offsetLog.formatVersion=1, or use the sink in foreachBatch"
            )
        return tuple(map(_value, offsets)), json.loads(metadata)["batchTimestampMs"]

    def _read(self, name: str) -> str:
        try:
            with self._files.open_input_stream(f"{self._root}/{name}") as stream:
                return str(stream.read(), "utf-8")
        except OSError as error:
            raise RefusedError(f"the checkpoint {self._location} has no {name}: {error}") from error


def _value(line: str) -> Any:
    """As the sink in foreachBatch reads it: JSON, or a text of the source's own."""
    if line == "-":
        return None
    try:
        return json.loads(line)
    except ValueError:
        return line
