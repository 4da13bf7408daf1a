"""The settings of a broker: Kafka 4.3.1's names, ranges and (but where said) defaults, and a few of our own.

Only settings that this broker obeys, or that Kafka's tools ask for, are here. Defaults that
differ from Kafka's say so: one node cannot replicate three times, and a group should not wait
for members that do not come.
"""

# ruff: noqa: E501  (a table reads best with a row on a line)
from __future__ import annotations

from semel.broker.settings.definitions import (
    CLUSTER_WIDE,
    READ_ONLY,
    Allowed,
    Setting,
    SettingType,
    Table,
    Value,
    any_of,
    at_least,
    between,
    one_of,
)
from semel.broker.settings.of_security import SECURITY_SETTINGS
from semel.broker.settings.of_topics import COMPRESSIONS, GZIP_LEVELS, NEVER_MS

BOOLEAN, DOUBLE, INT, LIST, LONG, SHORT, STRING = (
    SettingType.BOOLEAN,
    SettingType.DOUBLE,
    SettingType.INT,
    SettingType.LIST,
    SettingType.LONG,
    SettingType.SHORT,
    SettingType.STRING,
)
UNLIMITED = 2**31 - 1
MINUTES_MS, HOURS_MS = 60_000, 3_600_000
ONE_NODE = Allowed(
    lambda factor: factor in (-1, 1), "One node keeps one replica: only 1 is allowed"
)


def _setting(
    name: str,
    kind: SettingType,
    default: Value,
    allowed: Allowed | None,
    doc: str,
    update: str = READ_ONLY,
    fallbacks: tuple[tuple[str, int], ...] = (),
) -> Setting:
    return Setting(name, kind, default, doc, allowed, update, fallbacks)


STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS = Allowed(
    lambda name: name in ("", STANDARD_AUTHORIZER),
    f"Value must be empty, for no access rules, or {STANDARD_AUTHORIZER}",
)
PRINCIPALS = Allowed(
    lambda text: all(one.find(":") > 0 for one in principals(text)),
    "Each is a principal, as User:alice; a semicolon stands between two",
)


def principals(text: str) -> list[str]:
    """The principals of a list, as `super.users` has it: a name may hold a comma."""
    return [one for one in (one.strip() for one in text.split(";")) if one]


# fmt: off
_NODE = [
    _setting("node.id", INT, 1, at_least(0), "This broker's number in the cluster."),
    _setting("broker.id", INT, None, None, "Older name of `node.id`, for tools that ask by it; set that one. Without effect here.", fallbacks=(("node.id", 1),)),
    _setting("broker.rack", STRING, None, None, "The rack, or zone, this broker stands in."),
    _setting("process.roles", LIST, ("broker", "controller"), any_of("broker", "controller"), "One process is both broker and controller. Without effect here."),
    _setting("listeners", STRING, "PLAINTEXT://127.0.0.1:9092", None, "Where to listen: NAME://host:port, several with commas between; port 0 takes a free one. The name is a protocol (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL) or one that `listener.security.protocol.map` has. (Kafka listens on every interface.)"),
    _setting("advertised.listeners", STRING, None, None, "The addresses told to clients, where they differ from `listeners`: a client is told that of the listener it came by."),
    _setting("log.dir", STRING, "data", None, "The directory that holds everything this broker keeps."),
    _setting("durability", STRING, "os", one_of("os", "fsync"), "When a write counts as done: `os` = handed to the operating system (survives a killed process, as in Kafka), `fsync` = on the device (survives a power cut)."),
    _setting("metrics.port", INT, -1, between(-1, 65535), "Port of the Prometheus page; 0 takes a free one, -1 serves none."),
]

_ACCESS = [
    _setting("authorizer.class.name", STRING, "", AUTHORIZERS, f"Who decides what clients may do: empty = everybody may do everything, `{STANDARD_AUTHORIZER}` = access rules (ACLs) as Kafka has them."),
    _setting("super.users", STRING, "", PRINCIPALS, "Principals that may do everything, whatever the rules say: `User:admin;User:ops`. Needs `authorizer.class.name`."),
    _setting("allow.everyone.if.no.acl.found", BOOLEAN, False, None, "Whether everybody may use a resource that no access rule names. Needs `authorizer.class.name`."),
]

_QUOTAS = [
    _setting("controller.quota.window.num", INT, 11, at_least(1), "Of how many windows the rate of mutations may be used at once."),
    _setting("controller.quota.window.size.seconds", INT, 1, at_least(1), "How long each of those windows is."),
    _setting("quota.window.num", INT, 11, at_least(1), "Over how many windows clients' rates are taken."),
    _setting("quota.window.size.seconds", INT, 1, at_least(1), "How long each of those windows is."),
]

_SOCKETS = [
    _setting("connections.max.idle.ms", LONG, 600_000, at_least(1), "Connections silent for this long are closed."),
    _setting("max.connections", INT, UNLIMITED, at_least(0), "How many connections at once.", CLUSTER_WIDE),
    _setting("max.connections.per.ip", INT, UNLIMITED, at_least(0), "How many connections at once from one address.", CLUSTER_WIDE),
    _setting("queued.max.request.bytes", LONG, 256 << 20, at_least(-1), "How many bytes of requests, of all connections, may be held until they are answered; beyond, large requests are read one at a time. At least the largest request fits; -1 is no limit. (Kafka: -1)"),
    _setting("queued.max.requests", INT, 500, at_least(1), "How many requests of one connection may wait for their answer before no more are read from it. (In Kafka: of all connections.)"),
    _setting("request.max.elements", INT, 50_000, at_least(1), "How many elements (topics, partitions, keys, ids …) one request may have; one with more closes its connection. A request is served in one piece, and everybody else waits for it. (Kafka has no such limit.)", CLUSTER_WIDE),
    _setting("request.timeout.ms", INT, 30_000, at_least(1), "How long a request between brokers may take. Without effect here: there is one broker."),
    _setting("socket.listen.backlog.size", INT, 128, at_least(1), "How many connections may wait to be accepted. (Kafka: 50)"),
    _setting("socket.receive.buffer.bytes", INT, -1, at_least(-1), "The socket's receive buffer; -1 lets the system choose. (Kafka: 102400)"),
    _setting("socket.request.max.bytes", INT, 104_857_600, at_least(1), "The largest request; a larger one closes its connection."),
    _setting("socket.send.buffer.bytes", INT, -1, at_least(-1), "The socket's send buffer; -1 lets the system choose. (Kafka: 102400)"),
]

_TOPICS = [
    _setting("auto.create.topics.enable", BOOLEAN, True, None, "Create a topic when a client asks for one that is not there."),
    _setting("default.replication.factor", INT, 1, ONE_NODE, "Replicas of a topic created without saying how many."),
    _setting("delete.topic.enable", BOOLEAN, True, None, "Allow topics to be deleted."),
    _setting("max.request.partition.size.limit", INT, 2000, at_least(1), "How many partitions one DescribeTopicPartitions answer lists."),
    _setting("min.insync.replicas", INT, 1, at_least(1), "How many replicas must have a record before acks=all is answered.", CLUSTER_WIDE),
    _setting("num.partitions", INT, 1, at_least(1), "Partitions of a topic created without saying how many."),
    _setting("unclean.leader.election.enable", BOOLEAN, False, None, "Let a replica that lags become leader.", CLUSTER_WIDE),
]

_LOG = [
    _setting("compression.gzip.level", INT, -1, GZIP_LEVELS, "Level of gzip where the broker compresses; -1 is the library's default. Without effect here: the level is the library's.", CLUSTER_WIDE),
    _setting("compression.lz4.level", INT, 9, between(1, 17), "Level of lz4 where the broker compresses. Without effect here: the level is the library's.", CLUSTER_WIDE),
    _setting("compression.type", STRING, "producer", one_of(*COMPRESSIONS), "How batches are stored; `producer` keeps them as they came.", CLUSTER_WIDE),
    _setting("compression.zstd.level", INT, 3, between(-131072, 22), "Level of zstd where the broker compresses. Without effect here: the level is 3.", CLUSTER_WIDE),
    _setting("log.cleaner.backoff.ms", LONG, 15_000, at_least(0), "How long the cleaner rests when nothing needs cleaning.", CLUSTER_WIDE),
    _setting("log.cleaner.delete.retention.ms", LONG, 86_400_000, at_least(0), "How long compacted topics keep tombstones and markers.", CLUSTER_WIDE),
    _setting("log.cleaner.enable", BOOLEAN, True, None, "Whether compacted topics are compacted at all."),
    _setting("log.cleaner.max.compaction.lag.ms", LONG, NEVER_MS, at_least(1), "A record is compacted no later than this after it was written.", CLUSTER_WIDE),
    _setting("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, between(0, 1), "Compact when this share of a log is not yet compacted.", CLUSTER_WIDE),
    _setting("log.cleaner.min.compaction.lag.ms", LONG, 0, at_least(0), "A record is not compacted before this long after it was written.", CLUSTER_WIDE),
    _setting("log.cleanup.policy", LIST, ("delete",), any_of("compact", "delete"), "What happens to old data: delete, compact, or both.", CLUSTER_WIDE),
    _setting("log.flush.interval.messages", LONG, NEVER_MS, at_least(1), "Sync a log to the device after so many records. Without effect here: see `durability`.", CLUSTER_WIDE),
    _setting("log.flush.interval.ms", LONG, None, at_least(0), "Sync a log to the device after so many milliseconds. Without effect here: see `durability`.", CLUSTER_WIDE, (("log.flush.scheduler.interval.ms", 1),)),
    _setting("log.flush.scheduler.interval.ms", LONG, NEVER_MS, at_least(0), "How often logs are looked at for syncing. Without effect here: see `durability`."),
    _setting("log.index.interval.bytes", INT, 4096, at_least(0), "Add an entry to the offset index about every so many bytes.", CLUSTER_WIDE),
    _setting("log.index.size.max.bytes", INT, 10_485_760, at_least(4), "The largest index file of a segment.", CLUSTER_WIDE),
    _setting("log.local.retention.bytes", LONG, -2, at_least(-2), "With tiered storage, how many bytes stay local. Without effect here: there is no tiered storage.", CLUSTER_WIDE),
    _setting("log.local.retention.ms", LONG, -2, at_least(-2), "With tiered storage, how long data stays local. Without effect here: there is no tiered storage.", CLUSTER_WIDE),
    _setting("log.message.timestamp.after.max.ms", LONG, 3_600_000, at_least(0), "How far ahead of the broker's clock a record's timestamp may be.", CLUSTER_WIDE),
    _setting("log.message.timestamp.before.max.ms", LONG, NEVER_MS, at_least(0), "How far behind the broker's clock a record's timestamp may be.", CLUSTER_WIDE),
    _setting("log.message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"), "Whether records carry the producer's time or the broker's.", CLUSTER_WIDE),
    _setting("log.preallocate", BOOLEAN, False, None, "Reserve a new segment's full size at once. Without effect here.", CLUSTER_WIDE),
    _setting("log.retention.bytes", LONG, -1, None, "Delete the oldest segments of a partition larger than this; -1 is no limit.", CLUSTER_WIDE),
    _setting("log.retention.check.interval.ms", LONG, 300_000, at_least(1), "How often logs are looked at for segments past their retention."),
    _setting("log.retention.hours", INT, 168, None, "Delete segments older than this, in hours."),
    _setting("log.retention.minutes", INT, None, None, "Delete segments older than this, in minutes."),
    _setting("log.retention.ms", LONG, None, at_least(-1), "Delete segments older than this; -1 is for ever.", CLUSTER_WIDE, (("log.retention.minutes", MINUTES_MS), ("log.retention.hours", HOURS_MS))),
    _setting("log.roll.hours", INT, 168, at_least(1), "Begin a new segment after this time, in hours."),
    _setting("log.roll.jitter.hours", INT, 0, at_least(0), "Spread the rolling of segments by up to this many hours. Without effect here."),
    _setting("log.roll.jitter.ms", LONG, None, at_least(0), "Spread the rolling of segments by up to this much. Without effect here.", CLUSTER_WIDE, (("log.roll.jitter.hours", HOURS_MS),)),
    _setting("log.roll.ms", LONG, None, at_least(1), "Begin a new segment after this time.", CLUSTER_WIDE, (("log.roll.hours", HOURS_MS),)),
    _setting("log.segment.bytes", INT, 1_073_741_824, at_least(1_048_576), "Begin a new segment at this size.", CLUSTER_WIDE),
    _setting("log.segment.delete.delay.ms", LONG, 60_000, at_least(0), "How long a deleted segment's files stay on disk.", CLUSTER_WIDE),
    _setting("message.max.bytes", INT, 1_048_588, at_least(0), "The largest record batch, as stored.", CLUSTER_WIDE),
]

_FETCH = [
    _setting("fetch.max.bytes", INT, 57_671_680, at_least(1024), "The most one Fetch answer carries."),
    _setting("max.incremental.fetch.session.cache.bytes", LONG, 16 << 20, at_least(0), "About how many bytes the remembered fetch sessions take together. (Not in Kafka.)"),
    _setting("max.incremental.fetch.session.cache.slots", INT, 1000, at_least(0), "How many fetch sessions are remembered."),
]

_TRANSACTIONS = [
    _setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, at_least(0), "How long the broker itself waits for a transaction that is still ending before it answers."),
    _setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, at_least(1), "In which steps it waits. Without effect here: it is woken when the transaction has ended."),
    _setting("producer.id.expiration.check.interval.ms", INT, 600_000, at_least(1), "How often idle producers are looked for."),
    _setting("producer.id.expiration.ms", INT, 86_400_000, at_least(1), "A partition forgets a producer idle for this long.", CLUSTER_WIDE),
    _setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 1000, at_least(1), "How often transactions past their timeout are looked for. (Kafka: 10000)"),
    _setting("transaction.max.timeout.ms", INT, 900_000, at_least(1), "The longest transaction timeout a client may ask for."),
    _setting("transaction.partition.verification.enable", BOOLEAN, True, None, "Check with the coordinator, before the first append, that a partition belongs to the open transaction.", CLUSTER_WIDE),
    _setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, at_least(1), "How often idle transactional ids are looked for."),
    _setting("transaction.state.log.load.buffer.size", INT, 5_242_880, at_least(1), "How much of the transaction log is read at once when it is loaded. Without effect here."),
    _setting("transaction.state.log.min.isr", INT, 1, at_least(1), "`min.insync.replicas` of the transaction log. (Kafka: 2)"),
    _setting("transaction.state.log.num.partitions", INT, 50, at_least(1), "Partitions of the transaction log."),
    _setting("transaction.state.log.replication.factor", SHORT, 1, ONE_NODE, "Replicas of the transaction log. (Kafka: 3)"),
    _setting("transaction.state.log.segment.bytes", INT, 104_857_600, at_least(1), "Segment size of the transaction log."),
    _setting("transaction.two.phase.commit.enable", BOOLEAN, False, None, "Allow transactions that only their owner ends (KIP-939)."),
    _setting("transactional.id.expiration.ms", INT, 604_800_000, at_least(1), "A transactional id idle for this long is forgotten."),
]

_GROUPS = [
    _setting("group.consumer.assignment.interval.ms", INT, 250, at_least(0), "The shortest time between two assignments of a group (KIP-848), and how long a member keeps what it has when its subscription changes. (Kafka: 1000)", CLUSTER_WIDE),
    _setting("group.consumer.assignors", LIST, ("uniform", "range"), any_of("uniform", "range"), "Assignors of the broker (KIP-848); the first is the default."),
    _setting("group.consumer.heartbeat.interval.ms", INT, 5000, at_least(1), "How often members heartbeat (KIP-848)."),
    _setting("group.consumer.max.assignment.interval.ms", INT, 15_000, at_least(0), "The longest time between two assignments that may be set."),
    _setting("group.consumer.max.heartbeat.interval.ms", INT, 15_000, at_least(1), "The longest heartbeat interval a group may set."),
    _setting("group.consumer.max.session.timeout.ms", INT, 60_000, at_least(1), "The longest session timeout a group may set."),
    _setting("group.consumer.max.size", INT, UNLIMITED, at_least(1), "The most members of a group (KIP-848)."),
    _setting("group.consumer.migration.policy", STRING, "bidirectional", one_of("disabled", "upgrade", "downgrade", "bidirectional"), "Between which protocols a group may move."),
    _setting("group.consumer.min.assignment.interval.ms", INT, 0, at_least(0), "The shortest time between two assignments that may be set."),
    _setting("group.consumer.min.heartbeat.interval.ms", INT, 5000, at_least(1), "The shortest heartbeat interval a group may set."),
    _setting("group.consumer.min.session.timeout.ms", INT, 45_000, at_least(1), "The shortest session timeout a group may set."),
    _setting("group.consumer.session.timeout.ms", INT, 45_000, at_least(1), "A member silent for this long is removed (KIP-848)."),
    _setting("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer"), any_of("classic", "consumer"), "The group protocols this broker speaks. (Kafka adds streams.)"),
    _setting("group.initial.rebalance.delay.ms", INT, 0, at_least(0), "How long a new classic group waits for more members. (Kafka: 3000)"),
    _setting("group.max.bytes", INT, 64 << 20, at_least(1 << 16), "The most bytes that the members of one group may say together: subscriptions, metadata, assignments. (Not in Kafka.)"),
    _setting("groups.max.bytes", LONG, 256 << 20, at_least(1 << 20), "The same of all groups of this broker. (Not in Kafka.)"),
    _setting("group.max.session.timeout.ms", INT, 1_800_000, at_least(1), "The longest session timeout of a classic member."),
    _setting("group.max.size", INT, UNLIMITED, at_least(1), "The most members of a classic group."),
    _setting("group.min.session.timeout.ms", INT, 6000, at_least(1), "The shortest session timeout of a classic member."),
    _setting("offset.metadata.max.bytes", INT, 4096, at_least(0), "The longest metadata of a committed offset."),
    _setting("offsets.retention.check.interval.ms", LONG, 600_000, at_least(1), "How often expired offsets are looked for."),
    _setting("offsets.retention.minutes", INT, 10_080, at_least(1), "Committed offsets of a group without members are kept this long."),
    _setting("offsets.topic.num.partitions", INT, 50, at_least(1), "Partitions of the offsets topic."),
    _setting("offsets.topic.replication.factor", SHORT, 1, ONE_NODE, "Replicas of the offsets topic. (Kafka: 3)"),
    _setting("offsets.topic.segment.bytes", INT, 104_857_600, at_least(1), "Segment size of the offsets topic."),
]
# fmt: on

BROKER_SETTINGS = Table(
    sorted(
        _NODE
        + _ACCESS
        + _QUOTAS
        + _SOCKETS
        + _TOPICS
        + _LOG
        + _FETCH
        + _TRANSACTIONS
        + _GROUPS
        + SECURITY_SETTINGS,
        key=lambda setting: setting.name,
    )
)
