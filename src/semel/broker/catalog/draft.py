"""What one request wants changed in the catalog: records, gathered before any of them is written.

Whoever decides looks at the catalog and adds to a draft. The draft's records are written together,
then applied; a reply that was decided with them is given after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from semel.broker.catalog.features import ELIGIBLE_LEADER_REPLICAS
from semel.broker.catalog.journal import Record
from semel.core.access.quotas import Entity

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Catalog, Topic
    from semel.core.access.rules import Rule

PRODUCER_ID_BLOCK = 1000  # as Kafka's ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE
TOPIC = "topic"


class CatalogDraft:
    __slots__ = ("_catalog", "records")

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def create_topics(self, wanted: Iterable[tuple[str, int, Mapping[str, str]]]) -> dict[str, str]:
        """Topics of names that are free (`broker/catalog/topics` checks); their ids by name."""
        ids = {}
        for name, partitions, configs in wanted:
            ids[name] = str(self._catalog.new_topic_id())
            self.add(
                {
                    "is": "topic",
                    "name": name,
                    "id": ids[name],
                    "leader_epochs": [0] * partitions,
                    "configs": dict(configs),
                }
            )
        return ids

    def add_partitions(self, topic: Topic, count: int) -> None:
        """Grow to `count` partitions in all."""
        self.add({"is": "partitions", "topic": str(topic.id), "count": count})

    def delete_topic(self, topic: Topic) -> None:
        self.add({"is": "deleted topic", "topic": str(topic.id)})

    def configure_topic(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Put `configs` in place of the topic's own settings."""
        self.configure(TOPIC, topic.name, configs)

    def configure(self, kind: str, name: str, configs: Mapping[str, str]) -> None:
        """Put `configs` in place of the dynamic settings of a broker ("" for all) or a group."""
        self.add({"is": "configs", "type": kind, "name": name, "configs": dict(configs)})

    def change_rules(self, added: Iterable[Rule] = (), removed: Iterable[Rule] = ()) -> None:
        """Add access rules that are not there, and remove some that are: all or none."""
        for rule in added:
            self.add({"is": "rule", **rule._asdict()})
        for rule in removed:
            self.add({"is": "removed rule", **rule._asdict()})

    def set_quota(self, entity: Entity, key: str, value: float | None) -> None:
        """None removes it."""
        self.add(quota_record(entity, key, value))

    def allocate_producer_ids(self) -> range:
        """The next thousand producer ids, never handed out before, also across a crash."""
        first = self._catalog.next_producer_id
        self.add({"is": "producer ids", "next": first + PRODUCER_ID_BLOCK})
        return range(first, first + PRODUCER_ID_BLOCK)

    def set_features(self, levels: Mapping[str, int]) -> None:
        """Finalize feature levels; level 0 forgets the feature."""
        for name, level in levels.items():
            self.add({"is": "feature", "name": name, "level": level})
        catalog = self._catalog
        if levels.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0 and not catalog.has_cluster_level:
            self.records += catalog.raise_to_cluster_level()


def quota_record(entity: Entity, key: str, value: float | None) -> Record:
    return {"is": "quota", "entity": dict(sorted(entity)), "key": key, "value": value}
