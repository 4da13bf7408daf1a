"""What a client has done so far, as numbers: `producer.metrics()`, `consumer.metrics()`.

Counts only grow, from the client's start; a rate is the difference of two looks over the time
between them. They are kept once a request, a batch or a poll, never once a record.
"""

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from semel.client.cluster import Cluster
    from semel.client.machines.accumulator import Accumulator, ProducerBatch
    from semel.client.machines.types import TopicPartition


class Latency(TypedDict):
    """How long something took."""

    count: int
    """How many times it was done."""
    mean_ms: float
    max_ms: float


class ProducerMetrics(TypedDict):
    """What `Producer.metrics` gives."""

    uptime_s: float
    """Seconds since the producer was started."""
    records_sent: int
    """Records that the brokers have acknowledged."""
    bytes_sent: int
    """The size of their batches, compressed as they were sent."""
    batches_sent: int
    records_failed: int
    """Records that were given up: refused, too late, or dropped by an abort."""
    records_buffered: int
    """Records that wait to be sent or to be acknowledged, now."""
    bytes_buffered: int
    """What they take of `buffer_memory`, now."""
    batches_retried: int
    """How many times a batch was sent again."""
    batches_split: int
    """Batches that a broker found too large, sent again in two halves."""
    request_latency_ms: Latency
    """Of Produce requests: from when they left to their answers."""
    delivery_latency_ms: Latency
    """Of batches: from their first record to the acknowledgement, waiting and retries included."""
    transactions_committed: int
    transactions_aborted: int
    commit_latency_ms: Latency
    """Of commits: from the call to the coordinator's answer."""
    errors: dict[str, int]
    """Errors in brokers' answers to Produce, also those that a retry cured, by Kafka's name."""
    connections: int
    """Open connections, now."""
    connections_failed: int
    """Attempts to connect that failed."""


class ConsumerMetrics(TypedDict):
    """What `Consumer.metrics` gives."""

    uptime_s: float
    """Seconds since the consumer was started."""
    records_received: int
    """Records (and rows of tables) that polls and iteration have given out or hold ready."""
    bytes_received: int
    """Bytes of fetched batches, compressed as they came."""
    fetch_latency_ms: Latency
    """Of Fetch requests. A broker without news answers after `fetch_max_wait_ms`."""
    polls: int
    records_undeserialized: int
    """How many times a poll met a record that a deserializer could not read."""
    lag: dict["TopicPartition", int]
    """Offsets behind the end, for each assigned partition where it is known: the last stable
    offset, if only committed records are read."""
    rebalances: int
    """How many times the group gave this member an assignment."""
    commit_latency_ms: Latency
    """Of commits that worked."""
    commits_failed: int
    errors: dict[str, int]
    """Errors in brokers' answers to Fetch, also those that a retry cured, by Kafka's name."""
    connections: int
    """Open connections, now."""
    connections_failed: int
    """Attempts to connect that failed."""


class Stopwatch:
    """Collects a latency."""

    __slots__ = ("count", "max_ms", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.max_ms = 0.0

    def add(self, took_ms: float) -> None:
        self.count += 1
        self.total_ms += took_ms
        if took_ms > self.max_ms:
            self.max_ms = took_ms

    def shown(self) -> Latency:
        mean_ms = self.total_ms / self.count if self.count else 0.0
        return {"count": self.count, "mean_ms": mean_ms, "max_ms": self.max_ms}


class ProducerMeter:
    """Where a producer counts."""

    __slots__ = (
        "aborted",
        "batches",
        "bytes",
        "commits",
        "deliveries",
        "errors",
        "records",
        "requests",
        "retries",
        "splits",
        "started_ms",
    )

    def __init__(self, now_ms: float) -> None:
        self.started_ms = now_ms
        self.records = 0
        self.bytes = 0
        self.batches = 0
        self.retries = 0
        self.splits = 0
        self.aborted = 0
        self.requests = Stopwatch()
        self.deliveries = Stopwatch()
        self.commits = Stopwatch()
        self.errors: Counter[str] = Counter()

    def delivered(self, batch: "ProducerBatch", now_ms: float) -> None:
        self.batches += 1
        self.records += batch.count
        self.bytes += len(batch.data or b"")
        self.deliveries.add(now_ms - batch.created_ms)

    def shown(self, accumulator: "Accumulator", cluster: "Cluster") -> ProducerMetrics:
        return {
            "uptime_s": (cluster.now_ms() - self.started_ms) / 1000,
            "records_sent": self.records,
            "bytes_sent": self.bytes,
            "batches_sent": self.batches,
            "records_failed": accumulator.records_failed,
            "records_buffered": sum(batch.builder.count for batch in accumulator.unsettled()),
            "bytes_buffered": accumulator.buffered,
            "batches_retried": self.retries,
            "batches_split": self.splits,
            "request_latency_ms": self.requests.shown(),
            "delivery_latency_ms": self.deliveries.shown(),
            "transactions_committed": self.commits.count,
            "transactions_aborted": self.aborted,
            "commit_latency_ms": self.commits.shown(),
            "errors": dict(self.errors),
            "connections": cluster.open_connections,
            "connections_failed": cluster.failed_connections,
        }


class ConsumerMeter:
    """Where a consumer counts."""

    __slots__ = (
        "bytes",
        "commits",
        "commits_failed",
        "errors",
        "fetches",
        "polls",
        "rebalances",
        "records",
        "undeserialized",
    )

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.polls = 0
        self.undeserialized = 0
        self.rebalances = 0
        self.commits_failed = 0
        self.fetches = Stopwatch()
        self.commits = Stopwatch()
        self.errors: Counter[str] = Counter()
