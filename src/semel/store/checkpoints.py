"""Kafka's small text files: offsets, leader epochs, topic ids, the mark of a clean shutdown."""

import base64
import errno
import os
from collections.abc import Iterable, Mapping
from uuid import UUID

from semel.store.files import Files, replace_file

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LEADER_EPOCHS = "leader-epoch-checkpoint"
METADATA = "partition.metadata"

_CLEAN_SHUTDOWN_CONTENT = b'{"version":0,"brokerEpoch":-1}'

LogName = tuple[str, int]


def read_offsets(path: str) -> dict[LogName, int]:
    """(topic, partition) to offset; empty where the file is missing or not whole."""
    try:
        return {
            (topic, int(partition)): int(offset) for topic, partition, offset in _read_lines(path)
        }
    except ValueError:
        return {}


def write_offsets(files: Files, path: str, offsets: Mapping[LogName, int], durable: bool) -> None:
    lines = (f"{name[0]} {name[1]} {offset}" for name, offset in sorted(offsets.items()))
    _write_lines(files, path, lines, durable)


def read_epochs(path: str) -> list[tuple[int, int]]:
    """(leader epoch, its first offset); empty where the file is missing or not whole."""
    try:
        return [(int(epoch), int(offset)) for epoch, offset in _read_lines(path)]
    except ValueError:
        return []


def write_epochs(files: Files, path: str, epochs: Iterable[tuple[int, int]], durable: bool) -> None:
    _write_lines(files, path, (f"{epoch} {offset}" for epoch, offset in epochs), durable)


def read_topic_id(path: str) -> UUID:
    """From partition.metadata, where Kafka writes ids in URL-safe base64 without padding."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            fields = dict(line.partition(": ")[::2] for line in file.read().splitlines())
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, f"its {METADATA} is missing", path) from None
    try:
        return UUID(bytes=base64.urlsafe_b64decode(fields["topic_id"] + "=="))
    except (KeyError, ValueError):
        raise OSError(errno.EIO, f"no topic id can be read in its {METADATA}", path) from None


def write_topic_id(files: Files, path: str, topic_id: UUID, durable: bool) -> None:
    encoded = base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
    replace_file(files, path, f"version: 0\ntopic_id: {encoded}".encode(), durable)


def mark_clean(files: Files, root: str, durable: bool) -> None:
    replace_file(files, f"{root}/{CLEAN_SHUTDOWN}", _CLEAN_SHUTDOWN_CONTENT, durable)


def take_clean_mark(files: Files, root: str) -> bool:
    """Whether the last stop was clean; the mark is gone afterwards, so a crash leaves none."""
    path = f"{root}/{CLEAN_SHUTDOWN}"
    if not os.path.exists(path):
        return False
    files.unlink(path)
    files.sync_directory(root)
    return True


def _read_lines(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    entries = [line.split(" ") for line in lines[2:] if line]
    # A count that does not match is a torn file: recovery then begins earlier, which is safe.
    return entries if len(lines) >= 2 and lines[1] == str(len(entries)) else []


def _write_lines(files: Files, path: str, lines: Iterable[str], durable: bool) -> None:
    entries = list(lines)
    content = "\n".join(["0", str(len(entries)), *entries, ""])
    replace_file(files, path, content.encode(), durable)
