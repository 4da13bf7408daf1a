"""The topics as a group coordinator sees them: a value, replaced when they change."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from uuid import UUID

NO_TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    id: UUID
    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Topics:
    """`version` grows with every change; `created_version` only when a topic was created."""

    version: int = 0
    created_version: int = 0
    by_name: dict[str, TopicInfo] = field(default_factory=dict)
    by_id: dict[UUID, TopicInfo] = field(default_factory=dict)
    _fingerprints: dict[frozenset[str], int] = field(
        default_factory=dict, repr=False, compare=False
    )

    @staticmethod
    def of(topics: Iterable[TopicInfo], version: int = 1, created_version: int = 1) -> "Topics":
        known = list(topics)
        return Topics(
            version, created_version, {t.name: t for t in known}, {t.id: t for t in known}
        )

    def ids_of(self, names: Iterable[str]) -> set[UUID]:
        return {topic.id for name in names if (topic := self.by_name.get(name)) is not None}

    def name_of(self, topic_id: UUID) -> str | None:
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.name

    def fingerprint(self, names: Iterable[str]) -> int:
        """Changes when one of these topics appears, goes, is recreated or grows.

        Kafka hashes with XXH3 (KIP-1101). The value is only ever compared with one computed by the
        same broker, and a broker that finds a foreign one reassigns once; so any hash will do.
        """
        names = frozenset(names)
        known = self._fingerprints.get(names)
        if known is None:
            known = self._fingerprints[names] = self._fingerprint(names)
        return known

    def _fingerprint(self, names: frozenset[str]) -> int:
        known = sorted(name for name in names if name in self.by_name)
        if not known:
            return 0
        digest = blake2b(digest_size=8)
        for name in known:
            topic = self.by_name[name]
            digest.update(f"{name}\0{topic.id.hex}\0{topic.partitions}\n".encode())
        return int.from_bytes(digest.digest(), "big", signed=True)
