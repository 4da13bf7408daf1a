"""Settings of clients: Kafka's names in snake_case as keywords, or a dict of Java-style names.

Producer("localhost:9092", transactional_id="orders-1", linger_ms=10)
Producer({"bootstrap.servers": "localhost:9092", "linger.ms": "10"})

Values may be words, as a file of Java's properties has them.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Self

from semel.client.errors import UsageError
from semel.client.machines.patience import Backoff
from semel.net.client_connection import Endpoint, Security
from semel.net.client_sasl import Credentials, Token

# What members of classic groups decide, and the broker for those of consumer groups (KIP-848).
_CLASSIC_ONLY = frozenset(
    {"session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy"}
)
# What Java's clients call the strategies, after the package's name.
_JAVA_ASSIGNORS = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    bootstrap_servers: str | list[str] = "localhost:9092"
    client_id: str = "semel"
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    socket_connection_setup_timeout_ms: int = 10_000
    default_api_timeout_ms: int = 60_000
    security_protocol: str = "PLAINTEXT"
    ssl_context: ssl.SSLContext | None = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_password: str | None = None
    ssl_check_hostname: bool = True
    sasl_mechanism: str = "PLAIN"
    sasl_username: str = ""
    sasl_password: str = ""
    sasl_oauth_token: Token = ""

    @classmethod
    def of(
        cls,
        bootstrap_servers: Any = None,
        java_style: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> Self:
        """Checks names before anything else: a mistyped setting must not be silently ignored."""
        if isinstance(bootstrap_servers, Mapping):
            java_style, bootstrap_servers = {**bootstrap_servers, **(java_style or {})}, None
        values = {name.replace(".", "_"): value for name, value in (java_style or {}).items()}
        values |= {name: value for name, value in given.items() if value is not None}
        if bootstrap_servers is not None:
            values["bootstrap_servers"] = bootstrap_servers
        known = {field.name: field.type for field in fields(cls)}
        for name in values:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise UsageError(f"unknown setting {name!r}{hint}")
        try:
            return cls(**{name: _typed(value, known[name]) for name, value in values.items()})
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from None

    def __post_init__(self) -> None:
        if self.security_protocol not in _PROTOCOLS:
            raise ValueError(
                f"security_protocol {self.security_protocol!r}: use one of {', '.join(_PROTOCOLS)}"
            )

    def endpoints(self) -> list[Endpoint]:
        servers = self.bootstrap_servers
        if isinstance(servers, str):
            servers = [part.strip() for part in servers.split(",") if part.strip()]
        return [_endpoint(server) for server in servers]

    def backoff(self) -> Backoff:
        return Backoff(self.retry_backoff_ms, self.retry_backoff_max_ms)

    def security(self) -> Security:
        try:
            context = self._ssl() if self.security_protocol.endswith("SSL") else None
            credentials = None
            if self.security_protocol.startswith("SASL"):
                credentials = Credentials(
                    self.sasl_mechanism,
                    self.sasl_username,
                    self.sasl_password,
                    self.sasl_oauth_token,
                )
        except (OSError, ValueError) as error:  # files that are not there, unknown mechanisms
            raise UsageError(str(error)) from None
        return Security(context, credentials)

    def _ssl(self) -> ssl.SSLContext:
        if self.ssl_context is not None:
            return self.ssl_context
        context = ssl.create_default_context(cafile=self.ssl_cafile)
        context.check_hostname = self.ssl_check_hostname
        if self.ssl_certfile:
            context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, self.ssl_password)
        return context


@dataclass(frozen=True, kw_only=True)
class ProducerSettings(ClientSettings):
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    # The newest transaction protocol to speak; 1 keeps to the older one (before KIP-890).
    max_transaction_version: int = 2
    enable_idempotence: bool = True
    acks: int | str = "all"
    compression_type: str = "none"
    # Kafka's default is 16 KiB; a request per 16 KiB halves the throughput of records of 1 KiB.
    batch_size: int = 262_144
    # A table is there at once: its batches are as large as brokers take them by default (1 MiB).
    table_batch_size: int = 900_000
    linger_ms: float = 5.0
    buffer_memory: int = 32 * 1024 * 1024
    max_block_ms: int = 60_000
    max_request_size: int = 1_048_576
    max_in_flight_requests_per_connection: int = 5
    delivery_timeout_ms: int = 120_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.acks not in ("all", -1, 0, 1, "0", "1", "-1"):
            raise ValueError(f"acks {self.acks!r}: use 'all', 1 or 0")
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
        return -1 if self.acks == "all" else int(self.acks)


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(ClientSettings):
    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: str = "classic"
    # Who divides partitions under group_protocol "consumer": the broker's uniform or range.
    group_remote_assignor: str | None = None
    isolation_level: str = "read_uncommitted"
    auto_offset_reset: str = "latest"
    enable_auto_commit: bool = False
    auto_commit_interval_ms: int = 5_000
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    partition_assignment_strategy: str | list[str] = "range,cooperative-sticky"
    check_crcs: bool = True
    allow_auto_create_topics: bool = True
    client_rack: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("isolation_level", self.isolation_level, ("read_uncommitted", "read_committed"))
        _one_of("auto_offset_reset", self.auto_offset_reset, ("earliest", "latest", "none"))
        _one_of("group_protocol", self.group_protocol, ("classic", "consumer"))
        if self.group_remote_assignor is not None and self.group_protocol == "classic":
            raise ValueError("group_remote_assignor needs group_protocol='consumer'")

    @classmethod
    def of(
        cls,
        bootstrap_servers: Any = None,
        java_style: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> Self:
        made = super().of(bootstrap_servers, java_style, **given)
        first = bootstrap_servers if isinstance(bootstrap_servers, Mapping) else {}
        named = {name.replace(".", "_") for name in (*first, *(java_style or {}), *given)}
        if made.group_protocol == "consumer" and (ours := named & _CLASSIC_ONLY):
            raise UsageError(
                f"{', '.join(sorted(ours))}: under group_protocol='consumer' this is the broker's "
                "to say (group.consumer.* there, group_remote_assignor here)"
            )
        return made

    @property
    def strategies(self) -> list[str]:
        given = self.partition_assignment_strategy
        names = given.split(",") if isinstance(given, str) else given
        words = (name.strip().rpartition(".")[2] for name in names)
        return [_JAVA_ASSIGNORS.get(word, word) for word in words if word]


def _typed(value: Any, wanted: Any) -> Any:
    """A word as what it stands for, where a number or a yes or no is wanted."""
    if not isinstance(value, str):
        return value
    if wanted is bool:
        if value.lower() not in ("true", "false"):
            raise ValueError(f"{value!r}: should be true or false")
        return value.lower() == "true"
    return wanted(value) if wanted in (int, float) else value


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} {value!r}: use one of {', '.join(allowed)}")


def _endpoint(server: str) -> Endpoint:
    host, colon, port = server.rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(f"bootstrap server {server!r} should be host:port")
    return Endpoint(host.strip("[]"), int(port))
