"""What a member of a group wants to read: topics by name, or all whose names match a pattern."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from semel.client.machines.metadata import TopicMetadata


@dataclass(frozen=True, slots=True)
class Subscription:
    topics: frozenset[str] = frozenset()
    pattern: str | None = None

    def matching(self, known: Iterable[TopicMetadata]) -> frozenset[str]:
        """The names meant. A pattern must match the whole name, and never means internal topics."""
        if self.pattern is None:
            return self.topics
        matches = re.compile(self.pattern).fullmatch
        return frozenset(t.name for t in known if not t.is_internal and matches(t.name))
