"""Group commit: one fdatasync for all the appends that came before it, off the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from semel.store.files import Files, OpenFile
from semel.store.interface import StorageError, Ticket

# A transaction over ten partitions waits for as many files; the file system commits its journal
# once for those that ask together, so they must not stand in one queue.
_THREADS = 8


class SyncTimes:
    """How often files were brought to the disk, and how long that took in all."""

    __slots__ = ("count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0


class Syncer:
    """Runs blocking work in threads, then `done` on the event loop; inline where none runs."""

    def __init__(self) -> None:
        self.times = SyncTimes()
        self._threads: ThreadPoolExecutor | None = None

    def run(self, work: Callable[[], None], done: Callable[[OSError | None], None]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            done(_outcome(work))
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "semel-sync")
        self._threads.submit(lambda: _tell(loop, done, self._timed(work)))

    def _timed(self, work: Callable[[], None]) -> OSError | None:
        began = perf_counter()
        outcome = _outcome(work)
        # In a thread: two at once may lose one of the two numbers, which are for people to look at.
        self.times.seconds += perf_counter() - began
        self.times.count += 1
        return outcome

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None


def _outcome(work: Callable[[], None]) -> OSError | None:
    try:
        work()
    except OSError as error:
        return error
    return None


def _tell(
    loop: asyncio.AbstractEventLoop,
    done: Callable[[OSError | None], None],
    outcome: OSError | None,
) -> None:
    # The loop may be gone when the process ends in the middle of a sync: nobody waits then.
    if not loop.is_closed():
        loop.call_soon_threadsafe(done, outcome)


class GroupCommit:
    """The unsynced files of one log and the tickets that wait for them.

    While one sync runs, the tickets that come in gather for the next. A failed sync is never tried
    again: after it, the kernel may have dropped the pages and would report success.
    """

    def __init__(
        self, files: Files, syncer: Syncer, fail: Callable[[OSError], StorageError]
    ) -> None:
        self._files = files
        self._syncer = syncer
        self._fail = fail
        self._dirty: dict[int, OpenFile] = {}
        self._directories: set[str] = set()
        self._tickets: list[Ticket] = []
        self._syncing: list[Ticket] = []
        self._running = False

    def wrote(self, file: OpenFile) -> None:
        self._dirty[file.fd] = file

    def changed_directory(self, path: str) -> None:
        self._directories.add(path)

    def ticket(self) -> Ticket:
        """A ticket for everything written so far."""
        ticket = Ticket()
        self._tickets.append(ticket)
        if not self._running:
            self._running = True
            self._soon()
        return ticket

    def _soon(self) -> None:
        # At the end of this turn of the loop, so that all appends of the turn share the sync.
        try:
            asyncio.get_running_loop().call_soon(self._start)
        except RuntimeError:
            self._start()

    def _start(self) -> None:
        self._syncing, self._tickets = self._tickets, []
        dirty, self._dirty = self._dirty, {}
        directories, self._directories = self._directories, set()

        def work() -> None:
            for fd in dirty:
                self._files.sync(fd)
            for path in directories:
                self._files.sync_directory(path)

        self._syncer.run(work, self._finish)

    def _finish(self, error: OSError | None) -> None:
        tickets, self._syncing = self._syncing, []
        failure = self._fail(error) if error is not None else None
        if self._tickets and failure is None:
            self._start()
        else:
            self._running = False
        for ticket in tickets:
            ticket.settle(failure)
        if failure is not None:
            self.abandon(failure)

    def abandon(self, failure: StorageError) -> None:
        """Fail every ticket, also those whose sync is still under way: what it writes may be cut
        off or gone by the time it is done."""
        waiting = self._syncing + self._tickets
        self._syncing, self._tickets = [], []
        for ticket in waiting:
            ticket.settle(failure)
