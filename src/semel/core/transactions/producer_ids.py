"""Producer ids: numbers handed out one by one from blocks that are durable before they are used."""

from collections import deque
from collections.abc import Callable

#: So many before the last, the next block is asked for (Kafka's PID_PREFETCH_THRESHOLD: the last
#: tenth of a block).
LOW = 100


class ProducerIds:
    """`allocate` returns the next block of the cluster, already written down. A number therefore
    never comes twice, whatever crashes; the rest of a block is then unused, which does no harm.

    `order` has a block brought by `add` in good time, so that nobody waits for the device."""

    def __init__(
        self, allocate: Callable[[], range], order: Callable[[], None] = lambda: None
    ) -> None:
        self._allocate = allocate
        self._order = order
        self._is_ordered = False
        self._block = range(0)
        self._next_blocks: deque[range] = deque()

    def next(self) -> int:
        block = self._block
        if not block:
            block = self._next_blocks.popleft() if self._next_blocks else self._allocate()
        self._block = block[1:]
        if len(self._block) <= LOW and not self._next_blocks and not self._is_ordered:
            self._is_ordered = True
            self._order()
        return block[0]

    def add(self, block: range) -> None:
        self._next_blocks.append(block)
        self._is_ordered = False

    def not_added(self) -> None:
        """What was ordered does not come; whoever is next may order again."""
        self._is_ordered = False
