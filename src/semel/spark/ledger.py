"""The ledger: which batch of which query an application committed last, written inside its
transaction.

A compacted topic, application → entry. The decision what to do with a batch is pure; reading and
writing the topic is below it. Group offsets would not do: they expire a week after the last member.
"""

from __future__ import annotations

import enum
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from semel.spark.kafka.client import Cluster, KafkaError, check, patiently
from semel.spark.kafka.transactions import Lender, Refused
from semel.wire.batches import Record, records_of
from semel.wire.batches.committed import committed_only, fetched_batches
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.describe_configs import DescribeConfigsRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.list_offsets import ListOffsetsRequest

log = logging.getLogger(__name__)

LEDGER_TOPIC = "semel-ledger"
PARTITION = 0
EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_TOPIC = 2  # ConfigResource.Type
_PATIENCE_S = 60.0
_FETCH_BYTES = 8 << 20
_FIRST_LOOK = 1_000
_SAY_EVERY_S = 5.0
NOTHING = memoryview(b"")


class StaleCheckpoint(Exception):
    """The checkpoint and the ledger do not belong together; the message names both."""


class Verdict(enum.Enum):
    RUN = "run"
    SKIP = "skip"
    NEW_LINEAGE = "new lineage"


@dataclass(frozen=True, slots=True)
class Entry:
    """One committed batch: the offsets of all sources before it and after it."""

    query_id: str
    batch: int
    start: tuple[Any, ...]
    end: tuple[Any, ...]

    def encode(self) -> bytes:
        fields = {
            "version": 1,
            "query": self.query_id,
            "batch": self.batch,
            "start": self.start,
            "end": self.end,
        }
        return json.dumps(fields, sort_keys=True).encode()

    @classmethod
    def decode(cls, value: bytes) -> Entry:
        fields = json.loads(value)
        if fields["version"] != 1:
            raise Refused(f"ledger entry of version {fields['version']}: upgrade semel")
        return cls(fields["query"], fields["batch"], tuple(fields["start"]), tuple(fields["end"]))

    def __str__(self) -> str:
        return f"batch {self.batch} of query {self.query_id}, offsets {self.start} to {self.end}"


def judge(application: str, committed: Entry | None, batch: Entry) -> Verdict:
    """What to do with a batch, given what is committed. A batch number alone loses data."""
    continued = _continued_from_ledger(application, batch)
    if committed is None:
        if continued is not None:
            raise StaleCheckpoint(
                f"application {application!r} starts from its ledger, which has no entry"
            )
        return Verdict.RUN
    if committed.query_id != batch.query_id:
        return _judge_new_query(application, committed, batch, continued)
    if committed == batch:
        return Verdict.SKIP
    if batch.batch == committed.batch + 1 and batch.start == committed.end:
        return Verdict.RUN
    raise StaleCheckpoint(
        f"application {application!r} has committed {committed}; the checkpoint comes with {batch}."
        " It is neither that batch nor the next one: an old checkpoint was restored, or the topic"
        " with the ledger was. Continue with the right checkpoint, or begin a new one"
    )


def _judge_new_query(
    application: str, committed: Entry, batch: Entry, continued: tuple[Any, ...] | None
) -> Verdict:
    if batch.batch != 0:
        raise StaleCheckpoint(
            f"application {application!r} has committed {committed}; the checkpoint is of another"
            f" query and not at its beginning: {batch}. Use that query's checkpoint, a new one, or"
            " another application name"
        )
    if continued is not None and continued != tuple(map(_position, committed.end)):
        raise StaleCheckpoint(
            f"the query starts from the ledger of {application!r} at {continued}, but by now"
            f" {committed} is committed: another query got there first"
        )
    return Verdict.NEW_LINEAGE


def _continued_from_ledger(application: str, batch: Entry) -> tuple[Any, ...] | None:
    """Where the sources began, if this is a first batch that goes on from the ledger."""
    origins = [end.get("origin") for end in batch.end if isinstance(end, dict)]
    if batch.batch != 0 or not any(o and o.get("ledger") == application for o in origins):
        return None
    return tuple(origin and origin["topics"] for origin in origins)


def _position(end: Any) -> Any:
    return end.get("topics") if isinstance(end, dict) else end


class Ledger:
    """One application's line in the ledger's topic."""

    def __init__(self, cluster: Cluster, application: str, topic: str = LEDGER_TOPIC) -> None:
        self.cluster = cluster
        self.application = application
        self.topic = topic

    def create(self) -> None:
        """Create the topic if it is missing, and refuse one that would forget."""
        creatable = CreateTopicsRequest.CreatableTopic(
            name=self.topic,
            num_partitions=1,
            replication_factor=-1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name="cleanup.policy", value="compact"),
                # Compaction leaves the newest segment alone: small ones keep reading short.
                CreateTopicsRequest.CreatableTopicConfig(name="segment.bytes", value="16777216"),
            ],
        )

        def attempt() -> None:
            answer = self.cluster.any().call(CreateTopicsRequest(topics=[creatable]))
            code = answer.topics[0].error_code
            if code != ErrorCode.TOPIC_ALREADY_EXISTS:
                check(code, f"creating {self.topic!r}")

        try:
            self.cluster.refresh([self.topic])
        except KafkaError:
            patiently(attempt, f"creating {self.topic!r}", _PATIENCE_S)
        patiently(self._find_leader, f"finding {self.topic!r}", _PATIENCE_S)
        self._check_policy()

    def write(self, lender: Lender, entry: Entry) -> None:
        """Into the lender's open transaction."""
        lender.write(self.topic, PARTITION, self.application.encode(), entry.encode())

    def find(self) -> Entry | None:
        """Like `read`, for somebody who does not own the topic: None where it is missing."""
        try:
            self.cluster.refresh([self.topic])
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None
        return self.read()

    def read(self) -> Entry | None:
        """The last committed entry. Only what is read after a fence is final.

        Another application's open transaction hides everything behind it, so this waits until
        the last stable offset has passed what was the end of the topic.
        """
        end = self._offset(LATEST, READ_UNCOMMITTED)
        self._wait_until_stable(end)
        first = self._offset(EARLIEST, READ_UNCOMMITTED)
        span, high = _FIRST_LOOK, end
        while high > first:
            low = max(first, end - span)
            found = None
            for record in self._records(low, high):
                if record.key == self.application.encode():
                    found = record
            if found is not None:
                # A tombstone: somebody had the ledger forget this application.
                return None if found.value is None else Entry.decode(bytes(found.value))
            high, span = low, span * 8
        return None

    def _wait_until_stable(self, end: int) -> None:
        said = time.monotonic() - _SAY_EVERY_S
        while (stable := self._offset(LATEST, READ_COMMITTED)) < end:
            if time.monotonic() - said >= _SAY_EVERY_S:
                said = time.monotonic()
                log.warning(
                    "waiting for another application's open transaction in %s: offset %d of %d"
                    " is stable; it ends when that application commits, aborts or times out",
                    self.topic,
                    stable,
                    end,
                )
            time.sleep(0.1)

    def _records(self, low: int, high: int) -> Iterator[Record]:
        """Committed records with low <= offset < high, in order."""
        position = low
        while position < high:
            part = self._fetch(position)
            aborted = [(a.producer_id, a.first_offset) for a in part.aborted_transactions or ()]
            following = position
            for batch in committed_only(fetched_batches(part.records or NOTHING), aborted):
                following = batch.next_offset
                if not batch.is_control:
                    yield from (r for r in records_of(batch) if position <= r.offset < high)
            if following == position:
                return
            position = following

    def _fetch(self, offset: int) -> Any:
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=READ_COMMITTED,
            topics=[
                FetchRequest.FetchTopic(
                    topic=self.topic,
                    partitions=[
                        FetchRequest.FetchPartition(
                            partition=PARTITION,
                            fetch_offset=offset,
                            partition_max_bytes=_FETCH_BYTES,
                        )
                    ],
                )
            ],
        )
        return self._ask_leader(request, lambda a: a.responses[0].partitions[0])

    def _offset(self, timestamp: int, isolation: int) -> int:
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=self.topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=PARTITION, timestamp=timestamp
                        )
                    ],
                )
            ],
        )
        return int(self._ask_leader(request, lambda a: a.topics[0].partitions[0]).offset)

    def _ask_leader(self, request: Any, partition_of: Any) -> Any:
        def attempt() -> Any:
            part = partition_of(self.cluster.leader(self.topic, PARTITION).call(request))
            check(part.error_code, f"reading {self.topic!r}")
            return part

        return patiently(
            attempt, f"reading {self.topic!r}", _PATIENCE_S, self.cluster.forget_leaders
        )

    def _find_leader(self) -> None:
        self.cluster.refresh([self.topic])
        if self.cluster.leader_id(self.topic, PARTITION) < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {self.topic!r}")

    def _check_policy(self) -> None:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC,
            resource_name=self.topic,
            configuration_keys=["cleanup.policy"],
        )
        answer = self.cluster.any().call(DescribeConfigsRequest(resources=[resource]))
        policies = {entry.value for result in answer.results for entry in result.configs}
        if policies and "compact" not in policies:
            raise Refused(
                f"topic {self.topic!r} holds the ledger and must be compacted, not"
                f" {', '.join(sorted(map(str, policies)))}: set cleanup.policy=compact on it"
            )
