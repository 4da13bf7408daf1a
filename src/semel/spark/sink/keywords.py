"""The options of the sink as keyword arguments, for editors and type checkers.

Made from `options.py` by `make generated`: change that.
"""

from collections.abc import Mapping
from typing import Any, TypedDict

from semel.client.settings.clients import CompressionType


class WriteKeywords(TypedDict, total=False):
    compression_type: CompressionType
    """How batches are compressed. Default: `'none'`."""
    batch_size: int
    """How many bytes of rows a batch may have; brokers take 1 MiB by default. Default:
    `900_000`."""
    transaction_timeout_ms: int
    """The broker aborts a transaction that is open for longer: no micro-batch may take so long.
    It must not be more than the broker's `transaction.max.timeout.ms`. Default: `900_000`."""
    attempts: int
    """How many times a batch is tried before the query fails. Default: `4`."""
    ledger_topic: str
    """The compacted topic that remembers what is committed. Default: `'semel-ledger'`."""
    allow_unverified: bool
    """Whether to write to brokers before Kafka 3.6, to which a late task could write outside of
    its transaction. Default: `False`."""
    settings: Mapping[str, Any]
    """How to reach the brokers, TLS and SASL: settings of the clients, in any of their
    spellings. Default: `none`."""


class SinkKeywords(WriteKeywords, total=False):
    group_id: str | None
    """The consumer group under which the source's offsets are shown to lag tools; the
    application's name if nobody says. Nobody else may be a member of it. Default: `None`."""
    begin_anew: bool
    """Whether a new checkpoint may write again what the application has committed with another
    one. It is refused otherwise. Default: `False`."""
