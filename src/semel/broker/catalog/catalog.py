"""What the cluster durably knows of itself: topics, ids, configs, leader epochs, producer ids.

The catalog is a small state machine over a journal of its own (`metadata.log`): a change becomes
records, the records go to disk, and only `_apply` changes state, so that a restart replays to the
same state. Nothing is applied, told or answered before its records are on the device. Requests go
through `change`, which writes off the loop (`writer`); the methods that change something at once
are for those that cannot wait, such as a coordinator that needs its topic. The file is rewritten
from the present state when it has grown to several times what that state needs.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from semel.broker.catalog.credentials import ScramCredentials
from semel.broker.catalog.draft import TOPIC, CatalogDraft, quota_record
from semel.broker.catalog.features import ELIGIBLE_LEADER_REPLICAS
from semel.broker.catalog.internal_topics import INTERNAL_TOPICS, internal_topic
from semel.broker.catalog.journal import DamagedJournal, Journal, Record
from semel.broker.catalog.writer import CatalogWriter
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import Settings, TopicConfig
from semel.core.access.quotas import QuotaBook
from semel.core.access.rule_book import RuleBook
from semel.core.access.rules import Rule

log = logging.getLogger("semel.catalog")

FILE_NAME = "metadata.log"
#: Below this the journal is never rewritten: replaying a megabyte takes milliseconds.
SMALLEST_REWRITE = 1 << 20
#: Finalized features of a new cluster; metadata.version 30 is Kafka 4.3's (4.3-IV0).
FEATURES = {
    ELIGIBLE_LEADER_REPLICAS: 1,
    "group.version": 1,
    "metadata.version": 30,
    "transaction.version": 2,
}
#: The setting that stands at the cluster's level while that first feature is on.
CLUSTER_LEVEL = "min.insync.replicas"

BROKER, GROUP = "broker", "group"


#: What a record that this version does not understand raises when it is applied.
_UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, AssertionError)


#: What listeners are told of a record: their methods, and what these are given.
Events = list[tuple[Any, ...]] | None
T = TypeVar("T")


class Topic:
    """One topic; `leader_epochs` has one entry per partition."""

    __slots__ = ("config", "id", "leader_epochs", "name")

    def __init__(
        self, name: str, id: uuid.UUID, leader_epochs: list[int], config: TopicConfig
    ) -> None:
        self.name = name
        self.id = id
        self.leader_epochs = leader_epochs
        self.config = config

    @property
    def partition_count(self) -> int:
        return len(self.leader_epochs)

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {self.id}, {self.partition_count} partitions)"


class CatalogListener(Protocol):
    """Is told of changes in the same turn of the loop, after they are durable. What there was
    before it was added it reads from `catalog.topics`."""

    def topic_created(self, topic: Topic) -> None: ...
    def partitions_added(self, topic: Topic, first: int) -> None: ...
    def topic_deleted(self, topic: Topic) -> None: ...
    def topic_configured(self, topic: Topic) -> None: ...


class Catalog:
    def __init__(self, directory: Path, settings: Settings) -> None:
        self.settings = settings
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[uuid.UUID, Topic] = {}
        self.features: dict[str, int] = {}
        #: Dynamic configs of brokers ("" is the default of all) and groups: (type, name) → texts.
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        self.credentials = ScramCredentials()
        self.rules = RuleBook()
        self.quotas = QuotaBook()
        self.cluster_id = ""
        self.node_id = settings["node.id"]
        self.broker_epoch = 0
        self.next_producer_id = 0
        #: How many records the cluster's history has so far.
        self.offset = 0
        self.listeners: list[CatalogListener] = []
        self.new_topic_id = new_topic_id
        self._owner = self.node_id
        self._journal = Journal(directory / FILE_NAME)
        self._writer = CatalogWriter(self)
        self._alike: dict[str, list[str]] = {}
        self._rewritten_size = 0

    def open(self) -> None:
        """Replay the journal and begin a new broker epoch."""
        records, torn = self._journal.open()
        if torn:
            log.warning("cut off a torn write", extra={"file": self._journal.path, "bytes": torn})
        self._replay(records)
        self._rewritten_size = self._journal.size
        if not self.cluster_id:
            self.write_now([*_new_cluster(self.node_id), *self.raise_to_cluster_level()])
        if self._owner != self.node_id:
            raise BadSetting(
                f"Invalid value {self.node_id} for configuration node.id: "
                f"this data directory belongs to node {self._owner}"
            )
        self.write_now([{"is": "start", "broker_epoch": self.broker_epoch + 1}])

    def close(self) -> None:
        self._writer.close()
        self._journal.close()

    def _replay(self, records: list[Record]) -> None:
        for number, record in enumerate(records):
            try:
                self._apply(record)
            except _UNREADABLE as problem:
                raise DamagedJournal(
                    f"{self._journal.path} cannot be read by this version of Semel: its record "
                    f"{number} is {_without_secrets(record)}. Use the version that wrote it, or "
                    "put the file back from a backup."
                ) from problem

    # Changing

    def change(self, decide: Callable[[CatalogDraft], T]) -> asyncio.Future[T]:
        """Have a change decided and written off the loop, together with others: see `writer`."""
        return self._writer.change(decide)

    def change_now(self, decide: Callable[[CatalogDraft], T]) -> T:
        """The same at once, for those that cannot wait; the loop stands still meanwhile."""
        return self._writer.change_now(decide)

    def create_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> Topic:
        """Make a topic; its name must be free (handlers check before: `broker/catalog/topics`)."""
        return self.create_topics([(name, partitions, configs or {})])[0]

    def create_topics(self, wanted: Iterable[tuple[str, int, Mapping[str, str]]]) -> list[Topic]:
        """Make several topics with one write to the device."""
        names = self.change_now(lambda draft: draft.create_topics(wanted))
        return [self.topics[name] for name in names]

    def ensure_topic(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> Topic:
        """The topic of that name, made now if it is not there."""
        self._writer.settle()  # it may be on its way
        return self.topics.get(name) or self.create_topic(name, partitions, configs)

    def ensure_internal_topic(self, name: str) -> Topic:
        return self.ensure_topic(name, *internal_topic(self.settings, name))

    def add_partitions(self, topic: Topic, count: int) -> None:
        self.change_now(lambda draft: draft.add_partitions(topic, count))

    def delete_topic(self, name: str) -> Topic:
        topic = self.topics[name]
        self.change_now(lambda draft: draft.delete_topic(topic))
        return topic

    def bump_leader_epoch(self, topic: Topic, partition: int) -> int:
        epoch = topic.leader_epochs[partition] + 1
        record = {"is": "leader epoch", "topic": str(topic.id), "partition": partition}
        self.change_now(lambda draft: draft.add(record | {"epoch": epoch}))
        return epoch

    def configure_topic(self, topic: Topic, configs: Mapping[str, str]) -> None:
        self.change_now(lambda draft: draft.configure_topic(topic, configs))

    def configure(self, kind: str, name: str, configs: Mapping[str, str]) -> None:
        self.change_now(lambda draft: draft.configure(kind, name, configs))

    def change_rules(self, added: Iterable[Rule] = (), removed: Iterable[Rule] = ()) -> None:
        self.change_now(lambda draft: draft.change_rules(added, removed))

    def allocate_producer_ids(self) -> range:
        return self.change_now(lambda draft: draft.allocate_producer_ids())

    def set_features(self, levels: Mapping[str, int]) -> None:
        self.change_now(lambda draft: draft.set_features(levels))

    # Asking

    def like(self, name: str) -> str | None:
        """A topic whose name differs at most in dots for underscores."""
        return next(iter(self._alike.get(alike(name), ())), None)

    @property
    def has_cluster_level(self) -> bool:
        """Whether CLUSTER_LEVEL is set for the whole cluster, and only there."""
        return ELIGIBLE_LEADER_REPLICAS in self.features

    def raise_to_cluster_level(self) -> Iterator[Record]:
        """What makes that so (ConfigurationControlManager.maybeGenerateElrSafetyRecords)."""
        value = str(self.settings[CLUSTER_LEVEL])
        everywhere = {CLUSTER_LEVEL: value} | self.configs.get((BROKER, ""), {})
        yield {"is": "configs", "type": BROKER, "name": "", "configs": everywhere}
        for (kind, name), configs in self.configs.items():
            if kind == BROKER and name and CLUSTER_LEVEL in configs:
                rest = {key: text for key, text in configs.items() if key != CLUSTER_LEVEL}
                yield {"is": "configs", "type": kind, "name": name, "configs": rest}

    # Records in, records out

    def write_now(self, records: Sequence[Record]) -> None:
        """Append, apply and tell, on the loop."""
        self.append(records)
        self.written(records)
        if self.wants_rewriting:
            self.rewrite(self.snapshot())

    def append(self, records: Sequence[Record]) -> None:
        """Called by the writer's thread, or while that has nothing to do."""
        self._journal.append(records)

    def written(self, records: Sequence[Record]) -> None:
        """They are durable: change state, then tell whoever listens."""
        told = [event for record in records for event in self._apply(record) or ()]
        for name, *facts in told:
            for listener in self.listeners:
                getattr(listener, name)(*facts)

    def key_of(self, record: Record) -> str:
        """What a record touches: a topic, and the names that would collide with its own; otherwise
        everything of its kind."""
        kind: str = record["is"]
        name: str | None = None
        if kind == "topic" or (kind == "configs" and record["type"] == TOPIC):
            name = record["name"]
        elif "topic" in record:
            name = self.topics_by_id[uuid.UUID(record["topic"])].name
        return kind.removeprefix("removed ") if name is None else f"topic {alike(name)}"

    @property
    def wants_rewriting(self) -> bool:
        return self._journal.size > max(SMALLEST_REWRITE, 4 * self._rewritten_size)

    def rewrite(self, records: Iterable[Record]) -> None:
        """All is durable already: where the disk refuses, the file stays long until it has grown
        as much again."""
        try:
            self._journal.replace(records)
        except OSError as problem:
            log.error("cannot rewrite the journal", extra={"reason": problem.strerror})
        self._rewritten_size = self._journal.size

    def _apply(self, record: Record) -> Events:
        """Change state by a record; what listeners are to be told of it."""
        events = _APPLIERS[record["is"]](self, record)
        self.offset += 1
        return events

    def _apply_cluster(self, record: Record) -> None:
        self.cluster_id = record["id"]
        self._owner = record["node_id"]

    def _apply_start(self, record: Record) -> None:
        """Every partition gets a new leadership: the last one may have lost unsynced writes."""
        self.broker_epoch = record["broker_epoch"]
        for topic in self.topics.values():
            topic.leader_epochs[:] = [epoch + 1 for epoch in topic.leader_epochs]

    def _apply_broker_epoch(self, record: Record) -> None:
        self.broker_epoch = record["broker_epoch"]

    def _apply_topic(self, record: Record) -> Events:
        config = TopicConfig(self.settings, record["configs"])
        topic_id = uuid.UUID(record["id"])
        topic = Topic(record["name"], topic_id, list(record["leader_epochs"]), config)
        assert topic.name not in self.topics, topic.name
        self.topics[topic.name] = topic
        self.topics_by_id[topic.id] = topic
        self._alike.setdefault(alike(topic.name), []).append(topic.name)
        return [("topic_created", topic)]

    def _apply_partitions(self, record: Record) -> Events:
        topic = self.topics_by_id[uuid.UUID(record["topic"])]
        first = topic.partition_count
        assert record["count"] > first, record
        topic.leader_epochs.extend([0] * (record["count"] - first))
        return [("partitions_added", topic, first)]

    def _apply_deleted_topic(self, record: Record) -> Events:
        topic = self.topics_by_id.pop(uuid.UUID(record["topic"]))
        del self.topics[topic.name]
        same = self._alike[alike(topic.name)]
        same.remove(topic.name)
        if not same:
            del self._alike[alike(topic.name)]
        return [("topic_deleted", topic)]

    def _apply_leader_epoch(self, record: Record) -> None:
        topic = self.topics_by_id[uuid.UUID(record["topic"])]
        topic.leader_epochs[record["partition"]] = record["epoch"]

    def _apply_configs(self, record: Record) -> Events:
        kind, name, configs = record["type"], record["name"], record["configs"]
        if kind == TOPIC:
            self.topics[name].config.change(configs)
            return [("topic_configured", self.topics[name])]
        self.configs[kind, name] = configs
        if not configs:
            del self.configs[kind, name]
        if kind != BROKER:
            return None
        self._apply_broker_settings()
        return [("topic_configured", topic) for topic in self.topics.values()]

    def _apply_broker_settings(self) -> None:
        default = self.configs.get((BROKER, ""), {})
        own = self.configs.get((BROKER, str(self.node_id)), {})
        self.settings.change(default, own)
        for topic in self.topics.values():
            topic.config.clear()

    def _apply_producer_ids(self, record: Record) -> None:
        assert record["next"] > self.next_producer_id, record
        self.next_producer_id = record["next"]

    def _apply_feature(self, record: Record) -> None:
        self.features[record["name"]] = record["level"]
        if record["level"] == 0:
            del self.features[record["name"]]

    def _apply_quota(self, record: Record) -> None:
        self.quotas.set(frozenset(record["entity"].items()), record["key"], record["value"])

    def _apply_scram_credential(self, record: Record) -> None:
        self.credentials.apply(record)

    def _apply_rule(self, record: Record) -> None:
        self.rules.add(_rule_of(record))

    def _apply_removed_rule(self, record: Record) -> None:
        self.rules.remove(_rule_of(record))

    def _apply_offset(self, record: Record) -> None:
        self.offset = record["offset"] - 1  # `_apply` counts this one

    def snapshot(self) -> list[Record]:
        """Records that rebuild the present state and no more."""
        return list(self._snapshot())

    def _snapshot(self) -> Iterator[Record]:
        yield {"is": "cluster", "id": self.cluster_id, "node_id": self.node_id}
        for name, level in self.features.items():
            yield {"is": "feature", "name": name, "level": level}
        yield {"is": "broker epoch", "broker_epoch": self.broker_epoch}
        if self.next_producer_id:
            yield {"is": "producer ids", "next": self.next_producer_id}
        for (kind, name), configs in self.configs.items():
            yield {"is": "configs", "type": kind, "name": name, "configs": configs}
        yield from self.credentials.snapshot()
        for topic in self.topics.values():
            yield {
                "is": "topic",
                "name": topic.name,
                "id": str(topic.id),
                "leader_epochs": list(topic.leader_epochs),  # a thread packs it later
                "configs": topic.config.own,
            }
        for entity, quotas in self.quotas:
            for key, value in quotas.items():
                yield quota_record(entity, key, value)
        for rule in self.rules:
            yield {"is": "rule", **rule._asdict()}
        yield {"is": "offset", "offset": self.offset}


_APPLIERS: dict[str, Callable[[Catalog, Record], Events]] = {
    "cluster": Catalog._apply_cluster,
    "start": Catalog._apply_start,
    "broker epoch": Catalog._apply_broker_epoch,
    "topic": Catalog._apply_topic,
    "partitions": Catalog._apply_partitions,
    "deleted topic": Catalog._apply_deleted_topic,
    "leader epoch": Catalog._apply_leader_epoch,
    "configs": Catalog._apply_configs,
    "producer ids": Catalog._apply_producer_ids,
    "feature": Catalog._apply_feature,
    "quota": Catalog._apply_quota,
    "scram credential": Catalog._apply_scram_credential,
    "rule": Catalog._apply_rule,
    "removed rule": Catalog._apply_removed_rule,
    "offset": Catalog._apply_offset,
}


def _rule_of(record: Record) -> Rule:
    return Rule(*(record[field] for field in Rule._fields))


def new_topic_id() -> uuid.UUID:
    """Random, but as Kafka's never with a dash first: a command line would take it for a flag."""
    while True:
        id = uuid.uuid4()
        if not base64.urlsafe_b64encode(id.bytes).startswith(b"-"):
            return id


def alike(name: str) -> str:
    """The same of all topics whose names collide: metrics turn dots into underscores."""
    return name.replace(".", "_")


def id_text(id: uuid.UUID) -> str:
    """An id as Kafka prints it."""
    return base64.urlsafe_b64encode(id.bytes).decode().rstrip("=")


def _without_secrets(record: Record) -> Record:
    """A record as it may be shown."""
    if isinstance(record, dict) and record.get("is") in ("scram credential", "configs"):
        return {key: record[key] for key in record.keys() & {"is", "user", "type", "name"}}
    return record


def _new_cluster(node_id: int) -> Iterator[Record]:
    yield {"is": "cluster", "id": id_text(new_topic_id()), "node_id": node_id}
    for name, level in FEATURES.items():
        yield {"is": "feature", "name": name, "level": level}
