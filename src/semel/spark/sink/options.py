"""What can be said to the sink and to `write`, with what it means and what it is if nobody says.

`keywords` is made from this by `make generated`, for editors and type checkers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from semel.client.machines.ledger import LEDGER_TOPIC
from semel.client.settings.clients import CompressionType
from semel.client.settings.values import made_of
from semel.columnar.encode import BATCH_BYTES


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Of `write`, and of the sink."""

    compression_type: CompressionType = "none"
    """How batches are compressed."""
    batch_size: int = BATCH_BYTES
    """How many bytes of rows a batch may have; brokers take 1 MiB by default."""
    transaction_timeout_ms: int = 900_000
    """The broker aborts a transaction that is open for longer: no micro-batch may take so long. It
    must not be more than the broker's `transaction.max.timeout.ms`."""
    attempts: int = 4
    """How many times a batch is tried before the query fails."""
    ledger_topic: str = LEDGER_TOPIC
    """The compacted topic that remembers what is committed."""
    allow_unverified: bool = False
    """Whether to write to brokers before Kafka 3.6, to which a late task could write outside of its
    transaction."""
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How to reach the brokers, TLS and SASL: settings of the clients, in any of their spellings.
    """

    def __post_init__(self) -> None:
        if not self.attempts:
            raise ValueError("attempts 0: nothing would ever be written")


@dataclass(frozen=True, kw_only=True)
class SinkOptions(WriteOptions):
    """Of the sink."""

    group_id: str | None = None
    """The consumer group under which the source's offsets are shown to lag tools; the application's
    name if nobody says. Nobody else may be a member of it."""
    begin_anew: bool = False
    """Whether a new checkpoint may write again what the application has committed with another one.
    It is refused otherwise."""


def write_options(given: Mapping[str, Any]) -> WriteOptions:
    return made_of(WriteOptions, given)


def sink_options(given: Mapping[str, Any]) -> SinkOptions:
    return made_of(SinkOptions, given)
