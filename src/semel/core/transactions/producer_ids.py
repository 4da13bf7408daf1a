"""Producer ids: numbers handed out one by one from blocks that are durable before they are used."""

from collections.abc import Callable

BLOCK_SIZE = 1_000
"""As Kafka's ProducerIdsBlock: a crash loses what is left of a block, which harms nobody."""


class ProducerIds:
    """`allocate` returns the next block of the cluster, already written down. A number therefore
    never comes twice, whatever crashes."""

    def __init__(self, allocate: Callable[[], range]) -> None:
        self._allocate = allocate
        self._block = iter(range(0))

    def take(self) -> int:
        for producer_id in self._block:
            return producer_id
        self._block = iter(self._allocate())
        return next(self._block)
