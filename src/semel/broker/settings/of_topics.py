"""The settings of a topic (Kafka 4.3.1's LogConfig) and of a group (its GroupConfig).

A topic that does not set one follows the broker's setting named in `fallbacks`.
"""

# ruff: noqa: E501  (a table reads best with a row on a line)
from __future__ import annotations

import re

from semel.broker.settings.definitions import (
    Allowed,
    Setting,
    SettingType,
    Table,
    any_of,
    at_least,
    between,
    one_of,
)

BOOLEAN, DOUBLE, INT, LIST, LONG, STRING = (
    SettingType.BOOLEAN,
    SettingType.DOUBLE,
    SettingType.INT,
    SettingType.LIST,
    SettingType.LONG,
    SettingType.STRING,
)
NEVER_MS = 2**63 - 1
COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
GZIP_LEVELS = Allowed(lambda level: level == -1 or 1 <= level <= 9, "Value must be -1 or 1 to 9")
NOT_TIERED = Allowed(lambda on: not on, "Tiered storage is not available")
THROTTLED = Allowed(
    lambda entries: entries == ("*",) or all(re.fullmatch(r"\d+:\d+", entry) for entry in entries),
    "Value must be * or pairs partition:broker",
)


def _topic(
    name: str,
    kind: SettingType,
    default: object,
    broker: str | None,
    allowed: Allowed | None,
    doc: str,
) -> Setting:
    fallbacks = ((broker, 1),) if broker else ()
    return Setting(name, kind, default, doc, allowed, fallbacks=fallbacks)


# fmt: off
TOPIC_SETTINGS = Table([
    _topic("cleanup.policy", LIST, ("delete",), "log.cleanup.policy", any_of("compact", "delete"),
           "What happens to old data: `delete` drops segments past their retention, `compact` keeps the last record of each key; both may be given."),
    _topic("compression.gzip.level", INT, -1, "compression.gzip.level", GZIP_LEVELS,
           "Level of gzip where the broker compresses; -1 is the library's own default. Without effect here: the level is the library's."),
    _topic("compression.lz4.level", INT, 9, "compression.lz4.level", between(1, 17),
           "Level of lz4 where the broker compresses. Without effect here: the level is the library's."),
    _topic("compression.type", STRING, "producer", "compression.type", one_of(*COMPRESSIONS),
           "How batches are stored; `producer` keeps them as they came."),
    _topic("compression.zstd.level", INT, 3, "compression.zstd.level", between(-131072, 22),
           "Level of zstd where the broker compresses. Without effect here: the level is 3."),
    _topic("delete.retention.ms", LONG, 86_400_000, "log.cleaner.delete.retention.ms", at_least(0),
           "How long a compacted topic keeps tombstones and transaction markers after cleaning, so that slow readers still see them."),
    _topic("file.delete.delay.ms", LONG, 60_000, "log.segment.delete.delay.ms", at_least(0),
           "How long a deleted segment's files stay on disk."),
    _topic("flush.messages", LONG, NEVER_MS, "log.flush.interval.messages", at_least(1),
           "Sync the log to the device after so many records. Without effect here: see the broker's `durability`."),
    _topic("flush.ms", LONG, NEVER_MS, "log.flush.interval.ms", at_least(0),
           "Sync the log to the device after so many milliseconds. Without effect here: see the broker's `durability`."),
    _topic("follower.replication.throttled.replicas", LIST, (), None, THROTTLED,
           "Replicas whose copying is throttled on the follower's side. Without effect here: there is one broker."),
    _topic("index.interval.bytes", INT, 4096, "log.index.interval.bytes", at_least(0),
           "Add an entry to the offset index about every so many bytes of log."),
    _topic("leader.replication.throttled.replicas", LIST, (), None, THROTTLED,
           "Replicas whose copying is throttled on the leader's side. Without effect here: there is one broker."),
    _topic("local.retention.bytes", LONG, -2, "log.local.retention.bytes", at_least(-2),
           "With tiered storage, how many bytes stay local; -2 follows `retention.bytes`. Without effect here: there is no tiered storage."),
    _topic("local.retention.ms", LONG, -2, "log.local.retention.ms", at_least(-2),
           "With tiered storage, how long data stays local; -2 follows `retention.ms`. Without effect here: there is no tiered storage."),
    _topic("max.compaction.lag.ms", LONG, NEVER_MS, "log.cleaner.max.compaction.lag.ms", at_least(1),
           "A record is compacted no later than this after it was written."),
    _topic("max.message.bytes", INT, 1_048_588, "message.max.bytes", at_least(0),
           "The largest record batch, as stored, that the topic takes."),
    _topic("message.timestamp.after.max.ms", LONG, 3_600_000, "log.message.timestamp.after.max.ms", at_least(0),
           "How far ahead of the broker's clock a record's own timestamp may be."),
    _topic("message.timestamp.before.max.ms", LONG, NEVER_MS, "log.message.timestamp.before.max.ms", at_least(0),
           "How far behind the broker's clock a record's own timestamp may be."),
    _topic("message.timestamp.type", STRING, "CreateTime", "log.message.timestamp.type", one_of("CreateTime", "LogAppendTime"),
           "Whether records carry the producer's time or the broker's."),
    _topic("min.cleanable.dirty.ratio", DOUBLE, 0.5, "log.cleaner.min.cleanable.ratio", between(0, 1),
           "Compact when at least this share of the log is not yet compacted."),
    _topic("min.compaction.lag.ms", LONG, 0, "log.cleaner.min.compaction.lag.ms", at_least(0),
           "A record is not compacted before this long after it was written."),
    _topic("min.insync.replicas", INT, 1, "min.insync.replicas", at_least(1),
           "How many replicas must have a record before acks=all is answered."),
    _topic("preallocate", BOOLEAN, False, "log.preallocate", None,
           "Reserve a new segment's full size on disk at once. Without effect here."),
    _topic("remote.log.copy.disable", BOOLEAN, False, None, None,
           "With tiered storage, stop copying to the remote tier. Without effect here: there is no tiered storage."),
    _topic("remote.log.delete.on.disable", BOOLEAN, False, None, None,
           "With tiered storage, delete remote data once it is switched off. Without effect here: there is no tiered storage."),
    _topic("remote.storage.enable", BOOLEAN, False, None, NOT_TIERED,
           "Tiered storage, which this broker does not have: only `false` is allowed."),
    _topic("retention.bytes", LONG, -1, "log.retention.bytes", None,
           "Delete the oldest segments of a partition larger than this; -1 is no limit."),
    _topic("retention.ms", LONG, 604_800_000, "log.retention.ms", at_least(-1),
           "Delete segments whose newest record is older than this; -1 is for ever."),
    _topic("segment.bytes", INT, 1_073_741_824, "log.segment.bytes", at_least(1_048_576),
           "Begin a new segment file at this size."),
    _topic("segment.index.bytes", INT, 10_485_760, "log.index.size.max.bytes", at_least(4),
           "The largest index file of a segment."),
    _topic("segment.jitter.ms", LONG, 0, "log.roll.jitter.ms", at_least(0),
           "Spread the rolling of segments by up to this much, so that not all roll at once. Without effect here."),
    _topic("segment.ms", LONG, 604_800_000, "log.roll.ms", at_least(1),
           "Begin a new segment after this time even if it is not full."),
    _topic("unclean.leader.election.enable", BOOLEAN, False, "unclean.leader.election.enable", None,
           "Let a replica that lags become leader, at the price of lost records."),
])

GROUP_SETTINGS = Table([
    _topic("consumer.assignment.interval.ms", INT, 250, "group.consumer.assignment.interval.ms", at_least(0),
           "The shortest time between two assignments of the group (KIP-848), and how long a member keeps what it has when its subscription changes."),
    _topic("consumer.heartbeat.interval.ms", INT, 5000, "group.consumer.heartbeat.interval.ms", at_least(1),
           "How often members of the group are told to heartbeat (KIP-848)."),
    _topic("consumer.session.timeout.ms", INT, 45000, "group.consumer.session.timeout.ms", at_least(1),
           "A member silent for this long is removed from the group (KIP-848)."),
])
# fmt: on
