"""The options of the source, for editors and type checkers: a pipeline's `options`.

The names are those of Spark's own Kafka source where it has the same.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class SourceKeywords(TypedDict, total=False):
    """All are optional; a pipeline names the brokers and the topics itself."""

    startingOffsets: str
    """`earliest` (default), `latest`, numbers (`{"topic": {"0": 5}}`; -2 is earliest, -1 latest),
    or `committed`: where the sink of `application` has got to, even if the checkpoint is lost."""
    committedFallback: str
    """What `committed` means where nothing is committed yet; without it, that is an error."""
    application: str
    """Whose commits `committed` means; a pipeline's own name, if nobody says."""
    ledgerTopic: str
    """Where they are remembered, if not in `semel-ledger`."""
    endingOffsets: str
    """For batch reads: `latest` (default), `earliest` or numbers."""
    startingTimestamp: int
    """In ms, for all partitions."""
    endingTimestamp: int
    """In ms, for all partitions."""
    startingOffsetsByTimestamp: str
    """In ms, for each partition: `{"topic": {"0": 1700000000000}}`."""
    endingOffsetsByTimestamp: str
    """In ms, for each partition."""
    maxOffsetsPerTrigger: int
    """A batch has at most so many offsets; the smallest of the three limits counts."""
    maxRecordsPerTrigger: int
    """The same under another name."""
    maxBytesPerTrigger: int
    """A batch has about so many bytes at most."""
    minPartitions: int
    """At least so many tasks: partitions are split, and their rows no longer handled in order."""
    maxRecordsPerPartition: int
    """A task reads at most so many: partitions are split, and rows no longer handled in order."""
    tasks: int
    """How many tasks small partitions are packed into. Default: the machine's cores."""
    isolationLevel: Literal["read_committed", "read_uncommitted"]
    """Whether records of open and aborted transactions are left out. Default: `read_committed`."""
    failOnDataLoss: bool
    """Whether offsets lost by retention are an error (default), or a warning."""
    includeHeaders: bool
    """Adds the column `headers`. Default: `false`."""
    fetchBytes: int
    """How much a task asks for at once. Default: 8 MiB."""
    valueFormat: Literal["json", "avro"]
    """Values are decoded by `valueSchema`, and are structs."""
    valueSchema: str
    """For `json` columns (`id long, name string`), for `avro` its schema in JSON."""
    badValues: Literal["fail", "null"]
    """What becomes of values that do not fit the schema. Default: `fail`, naming the place."""
