"""The ledger: which batch an application committed last, written inside its transaction.

A compacted topic of one partition. An entry's key is the application's name, its value says the
number of the batch. It is written in the transaction of the batch itself, so both are there or
neither is; a batch that runs again after a crash is found in the ledger and skipped. Group offsets
would not do: they expire a week after the last member.

The client's `Ledger` and Spark's sink and source share this topic and this module: the topic's
name and settings, the format of an entry, and how the last one is found. What it takes to send a
request is theirs: a search hands out requests and is given the answers. docs/ledger.md has the
format for readers.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from semel.wire.batches import records_of
from semel.wire.batches.committed import committed_only, fetched_batches
from semel.wire.messages.fetch import FetchRequest, FetchResponse
from semel.wire.messages.list_offsets import ListOffsetsRequest

LEDGER_TOPIC = "semel-ledger"
LEDGER_PARTITION = 0
TOPIC_CONFIGS = {
    "cleanup.policy": "compact",
    # Compaction leaves the newest segment alone: small ones keep reading short.
    "segment.bytes": "16777216",
}
FORMAT_VERSION = 1
HIGHEST_FETCH_VERSION = 12
"""Later versions name topics by their ids, which a search does not know."""

_EARLIEST, _LATEST = -2, -1
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_FETCH_BYTES = 8 << 20
_FIRST_LOOK = 1_000  # offsets from the end; then eight times as many, and so on

T = TypeVar("T")


class LedgerRefusal(Exception):
    """The ledger cannot be used as it is; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One committed batch. `writer` says whose `note` it is: names are shared by all writers."""

    application: str
    number: int
    note: Any = None
    writer: str = "client"

    @property
    def key(self) -> bytes:
        return self.application.encode()

    def encode(self) -> bytes:
        """The value of its record."""
        fields = {
            "version": FORMAT_VERSION,
            "writer": self.writer,
            "number": self.number,
            "note": self.note,
        }
        return json.dumps(fields, sort_keys=True).encode()

    @classmethod
    def decode(cls, application: str, value: bytes) -> LedgerEntry:
        try:
            fields = json.loads(value)
            version = int(fields["version"])
            if version == FORMAT_VERSION:
                return cls(application, int(fields["number"]), fields["note"], fields["writer"])
        except (ValueError, TypeError, KeyError):
            raise LedgerRefusal(
                f"the ledger holds something that is not an entry under {application!r}:"
                " another program writes to that topic. Name another one for the ledger"
            ) from None
        raise LedgerRefusal(f"ledger entry of version {version}: upgrade semel")

    def check_writer(self, writer: str) -> None:
        """Two programs under one name would each take the other's batches for its own."""
        if self.writer != writer:
            raise LedgerRefusal(
                f"application {self.application!r} is in the ledger by {self.writer}, not by"
                f" {writer} (batch {self.number}): give one of the two another name"
            )


def check_policy(topic: str, policy: str | None) -> None:
    """`policy` is the topic's cleanup.policy, None where the broker does not say."""
    if policy is not None and "compact" not in policy:
        raise LedgerRefusal(
            f"topic {topic!r} has cleanup.policy={policy}: a ledger must be compacted, or the"
            " broker deletes what it remembers. Set cleanup.policy=compact on it"
        )


# Searching: generators of requests to the leader of the ledger's partition. Each is sent what
# `partition_of` finds in the response. Of an error there the caller takes care.


class Unstable(NamedTuple):
    """An open transaction hides what lies behind it: wait a moment, then send anything back."""

    stable_offset: int
    end_offset: int


Search = Generator[ListOffsetsRequest | FetchRequest | Unstable, Any, T]


def partition_of(response: Any) -> Any:
    """The ledger's partition in a response: it has an `error_code`, and offset or records."""
    if isinstance(response, FetchResponse):
        return response if response.error_code else response.responses[0].partitions[0]
    return response.topics[0].partitions[0]


def last_entry(topic: str, application: str) -> Search[LedgerEntry | None]:
    """The last committed entry of an application. Only what is read after a fence is final.

    Looks backwards from the end, in steps that grow: the entry is usually near.
    """
    key = application.encode()
    first, end = yield from _bounds(topic)
    span, high = _FIRST_LOOK, end
    while high > first:
        low = max(first, end - span)
        values = yield from _last_values(topic, low, high)
        if key in values:
            value = values[key]
            # A tombstone: somebody had the ledger forget this application.
            return None if value is None else LedgerEntry.decode(application, value)
        high, span = low, span * 8
    return None


def all_entries(topic: str) -> Search[dict[str, LedgerEntry]]:
    """The last committed entry of every application; what is no entry is left out."""
    first, end = yield from _bounds(topic)
    values = yield from _last_values(topic, first, end)
    return {entry.application: entry for entry in _readable(values)}


def _readable(values: Mapping[bytes, bytes | None]) -> Iterator[LedgerEntry]:
    for key, value in values.items():
        try:
            if value is not None:
                yield LedgerEntry.decode(key.decode(), value)
        except (LedgerRefusal, UnicodeDecodeError):
            continue


def _bounds(topic: str) -> Search[tuple[int, int]]:
    """The first offset and the end as it is now, once everything before it is decided."""
    end = (yield _offset_request(topic, _LATEST, _READ_UNCOMMITTED)).offset
    while (stable := (yield _offset_request(topic, _LATEST, _READ_COMMITTED)).offset) < end:
        yield Unstable(stable, end)
    first = (yield _offset_request(topic, _EARLIEST, _READ_UNCOMMITTED)).offset
    return first, end


def _last_values(topic: str, low: int, high: int) -> Search[dict[bytes, bytes | None]]:
    """The last committed value of each key with low <= offset < high."""
    values: dict[bytes, bytes | None] = {}
    position = low
    while position < high:
        part = yield _fetch_request(topic, position)
        aborted = [(a.producer_id, a.first_offset) for a in part.aborted_transactions or ()]
        batches = list(fetched_batches(part.records or b""))
        if not batches:
            break
        for batch in committed_only(batches, aborted):
            if not batch.is_control:
                for record in records_of(batch):
                    if position <= record.offset < high:
                        values[record.key or b""] = record.value
        position = batches[-1].next_offset
    return values


def _offset_request(topic: str, timestamp: int, isolation: int) -> ListOffsetsRequest:
    partition = ListOffsetsRequest.ListOffsetsPartition(
        partition_index=LEDGER_PARTITION, timestamp=timestamp
    )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])],
    )


def _fetch_request(topic: str, offset: int) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        partition=LEDGER_PARTITION, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
    )
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=_FETCH_BYTES,
        isolation_level=_READ_COMMITTED,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
