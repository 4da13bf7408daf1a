"""The way of changes into the catalog: decided in order, written together, off the loop.

A change is decided when nothing is being written: it sees everything before it. All that wait then
are decided one after the other, and written by one append with one sync in a thread, as long as
their records touch different things. A change that touches what the same append changes was decided
on what is about to change: it is decided again for the next append.
When the append is durable, all of it is applied, listeners are told, and the replies are given. If
it fails, none of it has happened.

Some cannot wait (a coordinator needs its topic now): they first finish what is being written.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from semel.broker.catalog.draft import CatalogDraft
from semel.broker.catalog.journal import Record

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Catalog

#: Records of one append; more wait for the next.
MOST_RECORDS = 10_000

T = TypeVar("T")


class Change(Generic[T]):
    """`decide` looks at the catalog and touches nothing: it may be asked more than once."""

    __slots__ = ("decide", "future", "reply")

    def __init__(self, decide: Callable[[CatalogDraft], T], future: asyncio.Future[T]) -> None:
        self.decide = decide
        self.future = future
        self.reply: Any = None


class Write:
    """Records on their way to the device. `run` is called by a thread, and by whoever cannot wait;
    the first one does it, the other finds it done."""

    def __init__(self, work: Callable[[], None], records: Sequence[Record]) -> None:
        self.records = records
        self.changes: list[Change[Any]] = []
        self.problem: OSError | None = None
        self._work = work
        self._lock = Lock()
        self._is_done = False

    def run(self) -> None:
        with self._lock:
            if self._is_done:
                return
            self._is_done = True
            try:
                self._work()
            except OSError as problem:
                self.problem = problem


class CatalogWriter:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._waiting: deque[Change[Any]] = deque()
        self._under_way: Write | None = None
        self._is_planned = False
        self._thread: ThreadPoolExecutor | None = None

    def change(self, decide: Callable[[CatalogDraft], T]) -> asyncio.Future[T]:
        """The reply of `decide`, once what it drafted is durable and applied."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(Change(decide, future))
        self._plan()
        return future

    def change_now(self, decide: Callable[[CatalogDraft], T]) -> T:
        """The same at once, on the loop."""
        self.settle()
        draft = CatalogDraft(self._catalog)
        reply = decide(draft)
        self._catalog.write_now(draft.records)
        return reply

    def settle(self) -> None:
        """Finish what is being written."""
        if self._under_way is not None:
            self._under_way.run()
            self._finish(self._under_way)

    def close(self) -> None:
        self.settle()
        for change in self._waiting:
            change.future.cancel()
        self._waiting.clear()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def _plan(self) -> None:
        """All that comes in this turn of the loop shares a write."""
        if self._waiting and self._under_way is None and not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._is_planned = False
        if self._under_way is not None:
            return
        changes, records = self._decide()
        if records:
            write = Write(lambda: self._catalog.append(records), records)
            write.changes = changes
            self._start(write)
            return
        for change in changes:
            _answer(change, None)
        self._plan()

    def _decide(self) -> tuple[list[Change[Any]], list[Record]]:
        """As many of those that wait as may share a write."""
        changes: list[Change[Any]] = []
        records: list[Record] = []
        touched: set[str] = set()
        while self._waiting and len(records) < MOST_RECORDS:
            change = self._waiting[0]
            draft = CatalogDraft(self._catalog)
            try:
                change.reply = change.decide(draft)
            except Exception as problem:
                self._waiting.popleft()
                if not change.future.done():
                    change.future.set_exception(problem)
                continue
            keys = {self._catalog.key_of(record) for record in draft.records}
            if not touched.isdisjoint(keys):
                break
            self._waiting.popleft()
            changes.append(change)
            records += draft.records
            touched |= keys
        return changes, records

    def _start(self, write: Write) -> None:
        self._under_way = write
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "semel-catalog")
        done = asyncio.get_running_loop().run_in_executor(self._thread, write.run)
        done.add_done_callback(lambda _: self._finish(write))

    def _finish(self, write: Write) -> None:
        if self._under_way is not write:
            return  # somebody could not wait
        self._under_way = None
        if write.problem is None:
            self._catalog.written(write.records)
        for change in write.changes:
            _answer(change, write.problem)
        if self._catalog.wants_rewriting:
            records = self._catalog.snapshot()
            self._start(Write(lambda: self._catalog.rewrite(records), ()))
        else:
            self._plan()


def _answer(change: Change[Any], problem: OSError | None) -> None:
    if change.future.done():
        return
    if problem is None:
        change.future.set_result(change.reply)
    else:
        change.future.set_exception(problem)
