"""Where committed reading must stop, and what it must skip: open transactions and aborted ones.

Both come from the log alone: a transactional batch opens, a marker closes. Kafka keeps the same in
ProducerStateManager (ongoingTxns, unreplicatedTxns) and TransactionIndex.
"""

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple


class AbortedTransaction(NamedTuple):
    """One entry of the aborted-transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int  # of its marker
    last_stable_offset: int  # right after its marker: no later entry begins before it


class Stability:
    """The open transactions of one partition, and those closed by a marker not yet durable."""

    __slots__ = ("_open", "closing")

    def __init__(self) -> None:
        # First offsets only grow, so the order of insertion is the order of offsets.
        self._open: OrderedDict[int, int] = OrderedDict()
        self.closing: OrderedDict[int, int] = OrderedDict()  # marker's offset -> first offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stability) and self._open == other._open

    __hash__ = None  # type: ignore[assignment]

    @property
    def open_transactions(self) -> dict[int, int]:
        """Producer id -> first offset, oldest first."""
        return dict(self._open)

    def open(self, producer_id: int, first_offset: int) -> None:
        self._open[producer_id] = first_offset

    def close(self, producer_id: int, marker_offset: int) -> None:
        self.closing[marker_offset] = self._open.pop(producer_id)

    def first_open_offset(self) -> int | None:
        return next(iter(self._open.values()), None)

    def durable_up_to(self, offset: int) -> None:
        """Everything below `offset` is safe: the markers there hold for good."""
        closing = self.closing
        while closing and next(iter(closing)) < offset:
            closing.popitem(last=False)

    def last_stable_offset(self, high_watermark: int) -> int:
        offset = high_watermark
        if self._open:
            offset = min(offset, next(iter(self._open.values())))
        if self.closing:
            offset = min(offset, min(self.closing.values()))
        return offset


class AbortedIndex:
    """The aborted transactions of one partition, by the offset of their marker.

    Four columns of integers: 32 bytes an entry, because a log can hold very many.
    """

    __slots__ = ("_first", "_last", "_producer", "_stable")

    def __init__(self) -> None:
        self._last = array("q")
        self._first = array("q")
        self._producer = array("q")
        self._stable = array("q")

    def __len__(self) -> int:
        return len(self._last)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return (self._entry(index) for index in range(len(self._last)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbortedIndex) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def add(self, entry: AbortedTransaction) -> None:
        assert not self._last or entry.last_offset > self._last[-1], "markers come in offset order"
        self._producer.append(entry.producer_id)
        self._first.append(entry.first_offset)
        self._last.append(entry.last_offset)
        self._stable.append(entry.last_stable_offset)

    def between(self, fetch_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those that have offsets in [fetch_offset, end_offset)."""
        found = []
        for index in range(bisect_left(self._last, fetch_offset), len(self._last)):
            if self._first[index] < end_offset:
                found.append(self._entry(index))
            if self._stable[index] >= end_offset:
                break  # every later entry begins at this stable offset or above
        return found

    def drop_below(self, log_start_offset: int) -> None:
        where = slice(0, bisect_left(self._last, log_start_offset))
        for column in (self._producer, self._first, self._last, self._stable):
            del column[where]

    def replace(
        self, first_offset: int, end_offset: int, entries: list[AbortedTransaction]
    ) -> None:
        """Put these in place of all whose markers lie in [first_offset, end_offset)."""
        where = slice(bisect_left(self._last, first_offset), bisect_left(self._last, end_offset))
        self._producer[where] = array("q", (entry.producer_id for entry in entries))
        self._first[where] = array("q", (entry.first_offset for entry in entries))
        self._last[where] = array("q", (entry.last_offset for entry in entries))
        self._stable[where] = array("q", (entry.last_stable_offset for entry in entries))

    def _entry(self, index: int) -> AbortedTransaction:
        return AbortedTransaction(
            self._producer[index], self._first[index], self._last[index], self._stable[index]
        )
