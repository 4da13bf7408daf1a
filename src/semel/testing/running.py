"""The broker under test: the real one, with its clock, its disk and its requests within reach."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from semel.broker.server import Broker
from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from semel.core.transactions.transaction import Transaction
    from semel.testing.clock import Clock
    from semel.testing.disk import DiskOfTest
    from semel.testing.faults.watching import RequestWatch

T = TypeVar("T")

#: Fifty files each, for the shards of one test's ids, would take longer than all the rest.
FEWER_SHARDS = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}


class BrokerUnderTest(Broker):
    """In a thread of its own; `call` and `wait` run something there."""

    def __init__(
        self,
        data: Path,
        port: int,
        settings: Mapping[str, object],
        *,
        clock: Clock,
        disk: DiskOfTest,
        watch: RequestWatch,
    ) -> None:
        given = {**FEWER_SHARDS, **settings}
        super().__init__(data, port=None if "listeners" in given else port, settings=given)
        self._clock = clock
        self._disk = disk
        watch.put_between(self._dispatcher)

    def now_ms(self) -> int:  # type: ignore[override]  # only the tests' clock has a state
        return self._clock.now_ms()

    def _start_partitions(self) -> None:
        from semel.broker.partitions.partitions import Partitions

        class PartitionsOnDiskOfTest(Partitions):
            files = self._disk

        self.partitions = self._begin(PartitionsOnDiskOfTest(self))

    # For the loop's own thread

    def known_transactions(self) -> Iterator[Transaction]:
        """Of all transactional ids. Asking does not start the coordinators."""
        return self.transactions.known() if "transactions" in self.__dict__ else iter(())

    def reload_transactions(self, transactional_id: str) -> None:
        """Forget what the id's coordinator knows, and read it from the log again."""
        self.transactions.shard_of(transactional_id).unload()
        self.transactions.shard_of(transactional_id)

    def reload_group(self, group_id: str) -> None:
        shard = self.groups.shard_of(group_id)
        shard.unload()
        self.groups._forget_waiting(shard, ErrorCode.NOT_COORDINATOR)
        self.groups.shard_of(group_id)

    def bring_back(self) -> None:
        """The partitions that a failing disk took offline; without this, within ten seconds."""
        for partition in self.partitions:
            if partition.log.offline is not None:
                self.partitions.reopen(partition)

    def drop_connections(self) -> None:
        """All of them, now: nobody waits for the answers of a broker that goes away."""
        for listener in self.listeners.all.values():
            for connection in list(listener.net.connections):
                connection.close()

    # From other threads

    def call(self, function: Callable[[], T]) -> T:
        """What the function gives, called where the broker's state may be looked at."""

        async def called() -> T:
            return function()

        return self.wait(called())

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine gives, run by the broker's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()
