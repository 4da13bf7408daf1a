"""Producer ids: numbers handed out one by one from blocks that are durable before they are used."""

from collections.abc import Callable


class ProducerIds:
    """`allocate` returns the next block of the cluster, already written down. A number therefore
    never comes twice, whatever crashes; the rest of a block is then unused, which does no harm."""

    def __init__(self, allocate: Callable[[], range]) -> None:
        self._allocate = allocate
        self._block = iter(range(0))

    def next(self) -> int:
        for producer_id in self._block:
            return producer_id
        self._block = iter(self._allocate())
        return next(self._block)
