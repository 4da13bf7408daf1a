"""The settings of clients as keyword arguments, for editors and type checkers.

Made from `connection.py` and `clients.py` by `make generated`: change those.
"""

import ssl
from collections.abc import Sequence
from typing import Literal, TypedDict

from semel.client.settings.clients import (
    Acks,
    AutoOffsetReset,
    CompressionType,
    GroupProtocol,
    IsolationLevel,
)
from semel.client.settings.connection import SaslMechanism, SecurityProtocol
from semel.net.client_sasl import Token


class ConnectionKeywords(TypedDict, total=False):
    client_id: str
    """The name under which brokers log and count this client. Default: `'semel'`."""
    request_timeout_ms: int
    """How long one request may go unanswered before its connection is given up. Default:
    `30_000`."""
    socket_connection_setup_timeout_ms: int
    """How long opening one connection may take. Default: `10_000`."""
    security_protocol: SecurityProtocol
    """Whether connections are encrypted (SSL) and authenticated by SASL. Default: `'PLAINTEXT'`."""
    ssl_context: ssl.SSLContext | None
    """A context made by hand, in place of all other `ssl_` settings. Default: `None`."""
    ssl_cafile: str | None
    """A PEM file of the authorities that brokers' certificates are checked against; without it
    the system's. Default: `None`."""
    ssl_certfile: str | None
    """A PEM file with this client's own certificate, and with its key unless `ssl_keyfile` has
    it. Default: `None`."""
    ssl_keyfile: str | None
    """A PEM file with the key of this client's certificate. Default: `None`."""
    ssl_password: str | None
    """The password of that key. Default: `None`."""
    ssl_check_hostname: bool
    """Whether a broker's certificate must be for the host that was connected to. Default:
    `True`."""
    sasl_mechanism: SaslMechanism
    """How this client proves who it is, where `security_protocol` says SASL. Default: `'PLAIN'`."""
    sasl_username: str
    """The user's name, for PLAIN and SCRAM. Default: `''`."""
    sasl_password: str
    """The user's password, for PLAIN and SCRAM. Default: `''`."""
    sasl_oauth_token: Token
    """For OAUTHBEARER: the token, or a function (it may be a coroutine's) that gets a fresh one.
    Default: `''`."""


class ClientKeywords(ConnectionKeywords, total=False):
    retry_backoff_ms: int
    """The wait before a request is sent again; it doubles with every attempt. Default: `100`."""
    retry_backoff_max_ms: int
    """The longest such wait. Default: `1_000`."""
    metadata_max_age_ms: int
    """After this time topics and leaders are asked for again, even without an error. Default:
    `300_000`."""
    default_api_timeout_ms: int
    """How long a call may take that is given no timeout of its own. Default: `60_000`."""


class ProducerKeywords(ClientKeywords, total=False):
    transactional_id: str | None
    """The identity of a transactional producer; of two that use it at once, the older is fenced.
    Default: `None`."""
    transaction_timeout_ms: int
    """The broker aborts a transaction that is open for longer. Default: `60_000`."""
    max_transaction_version: Literal[1, 2]
    """The newest transaction protocol to speak; 1 keeps to the older one (before KIP-890).
    Default: `2`."""
    enable_idempotence: bool
    """Whether the broker drops what a retry would write twice. Default: `True`."""
    acks: Acks
    """Who has to have a record before it counts as written: `all`, the leader (1), nobody (0).
    Default: `'all'`."""
    compression_type: CompressionType
    """How batches are compressed. Default: `'none'`."""
    batch_size: int
    """How many bytes of records a batch may have; a larger record has one of its own. Default:
    `262_144`."""
    table_batch_size: int
    """The same for batches of `send_table`. Default: `900_000`."""
    linger_ms: float
    """How long a batch waits for more records. Commits, flushes and full batches do not wait.
    Default: `5.0`."""
    buffer_memory: int
    """How many bytes may be buffered; `send` waits for room beyond that. Default: `33_554_432`."""
    max_block_ms: int
    """How long `send` waits for room or for a topic, and calls of transactions for an answer.
    Default: `60_000`."""
    max_request_size: int
    """The largest record, and about the largest request. Default: `1_048_576`."""
    max_in_flight_requests_per_connection: int
    """How many requests may be under way to a broker. Default: `5`."""
    delivery_timeout_ms: int
    """After this time a record that could not be written has failed. Default: `120_000`."""


class ConsumerKeywords(ClientKeywords, total=False):
    group_id: str | None
    """The group to share topics with, and to keep offsets under; needed to subscribe and commit.
    Default: `None`."""
    group_instance_id: str | None
    """Makes this a static member: a restart within the session's timeout moves no partitions.
    Default: `None`."""
    group_protocol: GroupProtocol
    """Which protocol to be a member by: the older one, or the broker's (KIP-848). Default:
    `'classic'`."""
    group_remote_assignor: str | None
    """Who divides partitions under group_protocol `consumer`: the broker's `uniform` or `range`.
    Default: `None`."""
    isolation_level: IsolationLevel
    """Whether records of open and aborted transactions are left out. Kafka's default differs.
    Default: `'read_committed'`."""
    auto_offset_reset: AutoOffsetReset
    """Where to begin without a committed offset, and after one that is gone from the log; `none`
    raises. Kafka's default is `latest`, which skips what was written before. Default:
    `'earliest'`."""
    enable_auto_commit: bool
    """Whether positions are committed in the background. Kafka's default differs: what was
    polled would count as done before it is, and a crash would lose it. Call `commit`, or
    commit offsets within a transaction. Default: `False`."""
    auto_commit_interval_ms: int
    """How often, where `enable_auto_commit` is set. Default: `5_000`."""
    fetch_min_bytes: int
    """A broker waits until it has so many bytes, or `fetch_max_wait_ms` is over. Default: `1`."""
    fetch_max_bytes: int
    """At most so many bytes from a broker at once; a larger batch comes alone. Default:
    `52_428_800`."""
    fetch_max_wait_ms: int
    """How long a broker may wait for `fetch_min_bytes`. Default: `500`."""
    max_partition_fetch_bytes: int
    """At most so many bytes from a partition at once; a larger batch comes alone. Default:
    `1_048_576`."""
    max_poll_records: int
    """At most so many records from one `poll`. Default: `500`."""
    max_poll_interval_ms: int
    """A member that does not poll for so long leaves the group. Default: `300_000`."""
    session_timeout_ms: int
    """A member that is not heard of for so long is thrown out (group_protocol `classic`).
    Default: `45_000`."""
    heartbeat_interval_ms: int
    """How often a member is heard of (group_protocol `classic`). Default: `3_000`."""
    partition_assignment_strategy: str | Sequence[str]
    """How partitions are divided (group_protocol `classic`): range, roundrobin, sticky or
    cooperative-sticky, the preferred first; Java's names of classes do as well. Default:
    `'range,cooperative-sticky'`."""
    check_crcs: bool
    """Whether the checksums of fetched batches are checked. Default: `True`."""
    allow_auto_create_topics: bool
    """Whether asking for a topic may create it, where the broker allows that. Default: `True`."""
    client_rack: str
    """Where this client is. Brokers may assign partitions by it; records are read from leaders.
    Default: `''`."""


class TransactKeywords(ClientKeywords, total=False):
    group_instance_id: str | None
    """Makes this a static member: a restart within the session's timeout moves no partitions.
    Default: `None`."""
    group_protocol: GroupProtocol
    """Which protocol to be a member by: the older one, or the broker's (KIP-848). Default:
    `'classic'`."""
    group_remote_assignor: str | None
    """Who divides partitions under group_protocol `consumer`: the broker's `uniform` or `range`.
    Default: `None`."""
    auto_offset_reset: AutoOffsetReset
    """Where to begin without a committed offset, and after one that is gone from the log; `none`
    raises. Kafka's default is `latest`, which skips what was written before. Default:
    `'earliest'`."""
    auto_commit_interval_ms: int
    """How often, where `enable_auto_commit` is set. Default: `5_000`."""
    fetch_min_bytes: int
    """A broker waits until it has so many bytes, or `fetch_max_wait_ms` is over. Default: `1`."""
    fetch_max_bytes: int
    """At most so many bytes from a broker at once; a larger batch comes alone. Default:
    `52_428_800`."""
    fetch_max_wait_ms: int
    """How long a broker may wait for `fetch_min_bytes`. Default: `500`."""
    max_partition_fetch_bytes: int
    """At most so many bytes from a partition at once; a larger batch comes alone. Default:
    `1_048_576`."""
    max_poll_records: int
    """At most so many records from one `poll`. Default: `500`."""
    max_poll_interval_ms: int
    """A member that does not poll for so long leaves the group. Default: `300_000`."""
    session_timeout_ms: int
    """A member that is not heard of for so long is thrown out (group_protocol `classic`).
    Default: `45_000`."""
    heartbeat_interval_ms: int
    """How often a member is heard of (group_protocol `classic`). Default: `3_000`."""
    partition_assignment_strategy: str | Sequence[str]
    """How partitions are divided (group_protocol `classic`): range, roundrobin, sticky or
    cooperative-sticky, the preferred first; Java's names of classes do as well. Default:
    `'range,cooperative-sticky'`."""
    check_crcs: bool
    """Whether the checksums of fetched batches are checked. Default: `True`."""
    allow_auto_create_topics: bool
    """Whether asking for a topic may create it, where the broker allows that. Default: `True`."""
    client_rack: str
    """Where this client is. Brokers may assign partitions by it; records are read from leaders.
    Default: `''`."""
    transaction_timeout_ms: int
    """The broker aborts a transaction that is open for longer. Default: `60_000`."""
    max_transaction_version: Literal[1, 2]
    """The newest transaction protocol to speak; 1 keeps to the older one (before KIP-890).
    Default: `2`."""
    acks: Acks
    """Who has to have a record before it counts as written: `all`, the leader (1), nobody (0).
    Default: `'all'`."""
    compression_type: CompressionType
    """How batches are compressed. Default: `'none'`."""
    batch_size: int
    """How many bytes of records a batch may have; a larger record has one of its own. Default:
    `262_144`."""
    table_batch_size: int
    """The same for batches of `send_table`. Default: `900_000`."""
    linger_ms: float
    """How long a batch waits for more records. Commits, flushes and full batches do not wait.
    Default: `5.0`."""
    buffer_memory: int
    """How many bytes may be buffered; `send` waits for room beyond that. Default: `33_554_432`."""
    max_block_ms: int
    """How long `send` waits for room or for a topic, and calls of transactions for an answer.
    Default: `60_000`."""
    max_request_size: int
    """The largest record, and about the largest request. Default: `1_048_576`."""
    max_in_flight_requests_per_connection: int
    """How many requests may be under way to a broker. Default: `5`."""
    delivery_timeout_ms: int
    """After this time a record that could not be written has failed. Default: `120_000`."""
