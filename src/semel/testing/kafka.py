"""A broker for tests, with all that a test wants to ask it and do to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self, TypeVar

from semel.testing.clock import Clock
from semel.testing.disk import DiskOfTest
from semel.testing.faults.faults import Faults
from semel.testing.faults.watching import Activity, RequestWatch
from semel.testing.records import StoredRecord, committed_records, stored_records
from semel.testing.running import BrokerUnderTest
from semel.testing.waiting import wait_for, wait_for_async

if TYPE_CHECKING:
    from semel.broker.partitions.partition import Partition
    from semel.testing.producing import Text
    from semel.testing.transactions import OpenTransaction

T = TypeVar("T")


class UnknownTopic(LookupError):
    """A topic that the broker does not have."""


class Kafka:
    """A real broker in this process, on a free port, with its own temporary data.

    It runs in a thread of its own, so that blocking clients and asyncio clients can both use it.
    `settings` have Kafka's names: `{"num.partitions": 3}`. With `data` it keeps its data in that
    directory.

    What is asked and done here goes past the protocol: it meets no faults, and is no request.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, object] | None = None,
        data: str | os.PathLike[str] | None = None,
    ) -> None:
        self._settings = dict(settings or {})
        self._given_data = data
        self._temporary: TemporaryDirectory[str] | None = None
        self._port = 0
        self._running: BrokerUnderTest | None = None
        self._made = 0
        self._activity = Activity()
        self.faults = Faults(self._activity)
        """What shall go wrong: `kafka.faults.on("EndTxn").drop_reply().once()`."""
        self.clock = Clock(lambda: self._broker)
        """The broker's time: `kafka.clock.advance(seconds=60)`."""
        self.disk = DiskOfTest(self._bring_back)
        """The broker's disk: `kafka.disk.fill()`, `kafka.disk.free()`."""
        self._watch = RequestWatch(self.faults, self._activity)

    # Life

    def start(self) -> None:
        """Listen. A `with` block, and the fixture, do it too."""
        if self._running is not None:
            return
        broker = BrokerUnderTest(
            self._data(),
            self._port,
            self._settings,
            clock=self.clock,
            disk=self.disk,
            watch=self._watch,
        )
        broker.__enter__()
        self._running, self._port = broker, broker.port

    def stop(self) -> None:
        """Go away; connections are closed. The data stays: `start()` goes on with it, on the same
        port. At the end of a `with` block, and of the fixture, temporary data is removed."""
        broker, self._running = self._running, None
        if broker is not None:
            broker.call(broker.drop_connections)
            broker.__exit__()

    def restart(self) -> None:
        """Go away and come back: same data, same port. Clients have to connect again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and remove temporary data."""
        self.faults.clear()
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        try:
            if kind is None:
                self.verify()
        finally:
            self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        await asyncio.to_thread(self.__exit__, kind, *problem)

    def verify(self) -> None:
        """Raises `UnusedFault` if a fault was never met. The end of a `with` block, or of a test
        with the fixture, does it too."""
        self.faults._verify(self._watch)

    # For clients

    @property
    def bootstrap_servers(self) -> str:
        """What any Kafka client is given to connect to, as "127.0.0.1:49152"."""
        return self._broker.bootstrap_servers

    @property
    def port(self) -> int:
        return self._broker.port

    # Topics and records

    def topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        configs: Mapping[str, object] | None = None,
    ) -> str:
        """Make a topic; returns its name. Without a name it gets one that no other topic has, which
        keeps tests apart that share a broker."""
        from semel.testing.topics import make_topic

        if name is None:
            self._made += 1
            name = f"topic-{os.getpid()}-{self._made}"
        broker, made = self._broker, name
        broker.call(lambda: make_topic(broker, made, partitions, configs or {}))
        self._activity.happened()
        return made

    @property
    def topics(self) -> list[str]:
        """The names of all topics, without Kafka's own."""
        broker = self._broker
        return broker.call(
            lambda: sorted(t.name for t in broker.catalog.topics.values() if not t.is_internal)
        )

    def produce(
        self,
        topic: str,
        *values: Text | None,
        key: Text | None = None,
        partition: int | None = None,
        headers: Mapping[str, bytes | None] | None = None,
        timestamp_ms: int | None = None,
    ) -> list[StoredRecord]:
        """Append records, outside any transaction; returns them as they are stored.

        Text is sent as UTF-8, None as null. The key chooses the partition as in Kafka's clients;
        without a key and without `partition`, it is the first. A topic that is not there is made.
        """
        from semel.testing.producing import produce

        broker = self._broker
        stored = broker.wait(
            produce(broker, topic, values, key, partition, headers or {}, timestamp_ms)
        )
        self._activity.happened()
        return stored

    def committed(self, topic: str, *, partition: int | None = None) -> list[StoredRecord]:
        """What a consumer with `isolation.level=read_committed` would get now, from the beginning:
        partition by partition, each in the order of its offsets."""
        return self._read(committed_records, topic, partition)

    def all_records(self, topic: str, *, partition: int | None = None) -> list[StoredRecord]:
        """Everything in the topic's log; `outcome` of each says committed, aborted or open."""
        return self._read(stored_records, topic, partition)

    def _read(
        self,
        read: Callable[[Partition, dict[int, str]], list[StoredRecord]],
        topic: str,
        index: int | None,
    ) -> list[StoredRecord]:
        broker = self._broker

        def look() -> list[StoredRecord]:
            ids = {txn.producer_id: txn.transactional_id for txn in broker.known_transactions()}
            partitions = self._partitions_of(broker, topic, index)
            return [record for each in partitions for record in read(each, ids)]

        return broker.call(look)

    def _partitions_of(
        self, broker: BrokerUnderTest, topic: str, index: int | None
    ) -> list[Partition]:
        found = broker.partitions.of(topic)
        if not found:
            names = sorted(broker.catalog.topics)
            near = get_close_matches(topic, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or '-'}"
            raise UnknownTopic(f"the broker has no topic {topic!r}; {hint}")
        if index is None:
            return list(found)
        if not 0 <= index < len(found):
            raise IndexError(f"{topic} has partitions 0 to {len(found) - 1}, not {index}")
        return [found[index]]

    # Transactions and groups

    @property
    def open_transactions(self) -> list[OpenTransaction]:
        """The transactions that are neither committed nor aborted yet, oldest first."""
        from semel.testing.transactions import open_transactions

        broker = self._broker
        return broker.call(lambda: open_transactions(broker))

    def committed_offsets(self, group_id: str) -> dict[tuple[str, int], int]:
        """(topic, partition) → the offset that the group has committed: where it goes on reading.
        Those of open transactions do not count yet."""
        from semel.testing.groups import committed_offsets

        broker = self._broker
        return broker.call(lambda: committed_offsets(broker, group_id))

    def fence(self, transactional_id: str) -> None:
        """Take the transactional id over, as a second producer with the same id does: its present
        producer is fenced, and its open transaction aborted."""
        from semel.testing.transactions import fence

        broker = self._broker
        broker.wait(fence(broker, transactional_id))
        self._activity.happened()

    def move_coordinator(
        self, *, transactional_id: str | None = None, group_id: str | None = None
    ) -> None:
        """Let the coordinator of a transactional id or a group move, as when its broker stops:
        it is unloaded and loaded again from its log, and until the client looks it up anew
        (FindCoordinator), it is answered NOT_COORDINATOR."""
        from semel.testing.faults.moving import move_coordinator

        move_coordinator(self._broker, self._watch, transactional_id, group_id)
        self._activity.happened()

    def expire_session(self, group_id: str, *, member_id: str | None = None) -> list[str]:
        """Let the session of a group's members, or of one, time out now; returns their ids."""
        from semel.testing.groups import expire_session

        broker = self._broker
        expired = broker.call(lambda: expire_session(broker, group_id, member_id))
        self._activity.happened()
        return expired

    def _bring_back(self) -> None:
        if self._running is not None:
            self._running.call(self._running.bring_back)

    # Waiting

    def wait_until(self, condition: Callable[[], T], timeout: float = 10.0) -> T:
        """What the condition gives as soon as that is true:

            orders = kafka.wait_until(lambda: kafka.committed("orders"))

        It is looked at whenever the broker has done something. A topic that is not there yet is
        waited for, too. In asyncio use `wait_until_async`.
        """
        look, complain = self._looking(condition)
        return wait_for(self._activity, look, timeout, complain)

    async def wait_until_async(
        self,
        condition: Callable[[], T],
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> T:
        """The same for asyncio, where waiting must not hold up the loop."""
        look, complain = self._looking(condition)
        return await wait_for_async(self._activity, look, timeout, complain)

    def _looking(
        self, condition: Callable[[], T]
    ) -> tuple[Callable[[], T], Callable[[float], str]]:
        last: list[object] = []

        def look() -> T:
            try:
                found = condition()
            except UnknownTopic as problem:
                last[:] = [problem]
                return None  # type: ignore[return-value]  # not true, hence never given to anybody
            last[:] = [found]
            return found

        def complain(timeout: float) -> str:
            return f"not true within {timeout:g} s; it was {last[0]!r} at last\n{self.report()}"

        return look, complain

    # For people

    def report(self) -> str:
        """The last requests, open transactions and topics, as a failing test shows them."""
        from semel.testing.report import report

        if self._running is None:
            return "the broker is stopped"
        try:
            return report(self._running, self._watch)
        except Exception as problem:
            return f"the broker cannot be asked: {problem!r}"

    def begin_test(self) -> None:
        """For a broker that several tests share: faults and requests of the last one are gone."""
        self.faults.clear()
        self.disk.free()
        self._watch.forget()

    def __repr__(self) -> str:
        where = self._running.bootstrap_servers if self._running is not None else "stopped"
        return f"Kafka({where})"

    @property
    def _broker(self) -> BrokerUnderTest:
        if self._running is None:
            raise RuntimeError(
                "the broker is not running: use `with Kafka() as kafka:`, or call kafka.start()"
            )
        return self._running

    def _data(self) -> Path:
        if self._given_data is not None:
            return Path(self._given_data)
        if self._temporary is None:
            self._temporary = TemporaryDirectory(prefix="semel-test-")
        return Path(self._temporary.name)
