"""The settings of each client, with what they mean and what they are if nobody says.

Producer("localhost:9092", transactional_id="orders-1", linger_ms=10)
Producer({"bootstrap.servers": "localhost:9092", "linger.ms": "10"})
"""

from dataclasses import dataclass
from typing import Literal

from semel.client.machines.patience import Backoff
from semel.client.settings.connection import ConnectionSettings
from semel.net.client_connection import Security

Acks = Literal["all", -1, 0, 1]
CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]
IsolationLevel = Literal["read_committed", "read_uncommitted"]
AutoOffsetReset = Literal["earliest", "latest", "none"]
GroupProtocol = Literal["classic", "consumer"]

# What members of classic groups decide, and the broker for those of consumer groups (KIP-848).
_CLASSIC_ONLY = frozenset(
    {"session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy"}
)
#: What makes `transact` exactly once is not for its caller to change.
TRANSACT_DECIDES = frozenset(
    {"group_id", "transactional_id", "isolation_level", "enable_auto_commit", "enable_idempotence"}
)
# What Java's clients call the strategies, after the package's name.
_JAVA_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


@dataclass(frozen=True, kw_only=True)
class ClientSettings(ConnectionSettings):
    """What every client has beside its connections: patience."""

    retry_backoff_ms: int = 100
    """The wait before a request is sent again; it doubles with every attempt."""
    retry_backoff_max_ms: int = 1_000
    """The longest such wait."""
    metadata_max_age_ms: int = 300_000
    """After this time topics and leaders are asked for again, even without an error."""
    default_api_timeout_ms: int = 60_000
    """How long a call may take that is given no timeout of its own."""

    def backoff(self) -> Backoff:
        return Backoff(self.retry_backoff_ms, self.retry_backoff_max_ms)

    def security(self) -> Security:
        return Security(self.tls(), self.credentials())


@dataclass(frozen=True, kw_only=True)
class ProducerSettings(ClientSettings):
    """What a producer has beside that."""

    transactional_id: str | None = None
    """The identity of a transactional producer; of two that use it at once, the older is fenced."""
    transaction_timeout_ms: int = 60_000
    """The broker aborts a transaction that is open for longer."""
    max_transaction_version: Literal[1, 2] = 2
    """The newest transaction protocol to speak; 1 keeps to the older one (before KIP-890)."""
    enable_idempotence: bool = True
    """Whether the broker drops what a retry would write twice."""
    acks: Acks = "all"
    """Who has to have a record before it counts as written: `all`, the leader (1), nobody (0)."""
    compression_type: CompressionType = "none"
    """How batches are compressed."""
    # Kafka's default is 16 KiB; a request per 16 KiB halves the throughput of records of 1 KiB.
    batch_size: int = 262_144
    """How many bytes of records a batch may have; a larger record has one of its own."""
    # A table is there at once: its batches are as large as brokers take them by default (1 MiB).
    table_batch_size: int = 900_000
    """The same for batches of `send_table`."""
    linger_ms: float = 5.0
    """How long a batch waits for more records. Commits, flushes and full batches do not wait."""
    buffer_memory: int = 32 * 1024 * 1024
    """How many bytes may be buffered; `send` waits for room beyond that."""
    max_block_ms: int = 60_000
    """How long `send` waits for room or for a topic, and calls of transactions for an answer."""
    max_request_size: int = 1_048_576
    """The largest record, and about the largest request."""
    max_in_flight_requests_per_connection: int = 5
    """How many requests may be under way to a broker."""
    delivery_timeout_ms: int = 120_000
    """After this time a record that could not be written has failed."""

    def check(self, named: frozenset[str]) -> None:
        super().check(named)
        if self.transactional_id is not None and not self.transactional_id:
            raise ValueError("transactional_id must not be empty")
        if self.transactional_id is not None and not self.enable_idempotence:
            raise ValueError("transactions need enable_idempotence=True")
        if self.enable_idempotence and self.required_acks != -1:
            raise ValueError("enable_idempotence needs acks='all': set one or the other")
        if self.enable_idempotence and not 1 <= self.max_in_flight_requests_per_connection <= 5:
            raise ValueError(
                "enable_idempotence needs max_in_flight_requests_per_connection 1 to 5"
            )

    @property
    def required_acks(self) -> int:
        return -1 if self.acks == "all" else self.acks


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(ClientSettings):
    """What a consumer has. The defaults are those of a library for exactly once: only committed
    records are seen, none is skipped, and nothing is committed that the program did not say."""

    group_id: str | None = None
    """The group to share topics with, and to keep offsets under; needed to subscribe and commit."""
    group_instance_id: str | None = None
    """Makes this a static member: a restart within the session's timeout moves no partitions."""
    group_protocol: GroupProtocol = "classic"
    """Which protocol to be a member by: the older one, or the broker's (KIP-848)."""
    group_remote_assignor: str | None = None
    """Who divides partitions under group_protocol `consumer`: the broker's `uniform` or `range`."""
    isolation_level: IsolationLevel = "read_committed"
    """Whether records of open and aborted transactions are left out. Kafka's default differs."""
    auto_offset_reset: AutoOffsetReset = "earliest"
    """Where to begin without a committed offset, and after one that is gone from the log; `none`
    raises. Kafka's default is `latest`, which skips what was written before."""
    enable_auto_commit: bool = False
    """Whether positions are committed in the background. Kafka's default differs: what was polled
    would count as done before it is, and a crash would lose it. Call `commit`, or commit offsets
    within a transaction."""
    auto_commit_interval_ms: int = 5_000
    """How often, where `enable_auto_commit` is set."""
    fetch_min_bytes: int = 1
    """A broker waits until it has so many bytes, or `fetch_max_wait_ms` is over."""
    fetch_max_bytes: int = 50 * 1024 * 1024
    """At most so many bytes from a broker at once; a larger batch comes alone."""
    fetch_max_wait_ms: int = 500
    """How long a broker may wait for `fetch_min_bytes`."""
    max_partition_fetch_bytes: int = 1_048_576
    """At most so many bytes from a partition at once; a larger batch comes alone."""
    max_poll_records: int = 500
    """At most so many records from one `poll`."""
    max_poll_interval_ms: int = 300_000
    """A member that does not poll for so long leaves the group."""
    session_timeout_ms: int = 45_000
    """A member that is not heard of for so long is thrown out (group_protocol `classic`)."""
    heartbeat_interval_ms: int = 3_000
    """How often a member is heard of (group_protocol `classic`)."""
    partition_assignment_strategy: str | tuple[str, ...] = "range,cooperative-sticky"
    """How partitions are divided (group_protocol `classic`): range, roundrobin, sticky or
    cooperative-sticky, the preferred first; Java's names of classes do as well."""
    check_crcs: bool = True
    """Whether the checksums of fetched batches are checked."""
    allow_auto_create_topics: bool = True
    """Whether asking for a topic may create it, where the broker allows that."""
    client_rack: str = ""
    """Where this client is. Brokers may assign partitions by it; records are read from leaders."""

    def check(self, named: frozenset[str]) -> None:
        super().check(named)
        if self.group_remote_assignor is not None and self.group_protocol == "classic":
            raise ValueError("group_remote_assignor needs group_protocol='consumer'")
        if self.group_protocol == "consumer" and (ours := named & _CLASSIC_ONLY):
            raise ValueError(
                f"{', '.join(sorted(ours))}: under group_protocol='consumer' this is the broker's "
                "to say (group.consumer.* there, group_remote_assignor here)"
            )

    @property
    def strategies(self) -> list[str]:
        given = self.partition_assignment_strategy
        names = given.split(",") if isinstance(given, str) else given
        words = (name.strip().rpartition(".")[2] for name in names)
        return [_JAVA_ASSIGNORS.get(word, word) for word in words if word]
