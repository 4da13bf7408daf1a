"""What `semel demo` counts afterwards: the output topics, read from the beginning without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Count:
    """Orders in a topic, against those that should be there."""

    found: int
    lost: int
    doubled: int


class Audit:
    def __init__(self, bootstrap_servers: str, orders: int) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._orders = orders

    def count(self, topic: str) -> Count:
        seen = Counter(row["order"] for row in self._values(topic))
        lost = sum(1 for number in range(self._orders) if number not in seen)
        return Count(len(seen), lost, sum(seen.values()) - len(seen))

    def totals(self) -> dict[str, tuple[int, int]]:
        """The last total of each country: a key's records are in one partition, in order."""
        from semel.demo.job import TOTALS

        rows = self._values(TOTALS)
        return {row["country"]: (row["orders"], row["cents"]) for row in rows}

    def written(self, topic: str) -> int:
        return sum(1 for _ in self._values(topic, "read_uncommitted"))

    def _values(self, topic: str, isolation: str = "read_committed") -> Iterator[dict[str, Any]]:
        from semel.spark.source.options import SourceOptions
        from semel.spark.source.source import BatchReader, Work

        options = SourceOptions.of(
            {
                "kafka.bootstrap.servers": self._bootstrap_servers,
                "subscribe": topic,
                "isolationLevel": isolation,
            }
        )
        reader = BatchReader(options)
        for work in reader.partitions():
            assert isinstance(work, Work)
            for batch in reader.read(work):
                yield from (json.loads(value) for value in batch.column("value").to_pylist())
