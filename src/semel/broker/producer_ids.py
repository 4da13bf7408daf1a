"""Producer ids, handed out one by one from durable blocks: none twice, also after a crash."""

from __future__ import annotations

from semel.broker.catalog import Catalog


class ProducerIds:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._left = iter(range(0))

    def next(self) -> int:
        for producer_id in self._left:
            return producer_id
        self._left = iter(self._catalog.allocate_producer_ids())
        return next(self._left)
