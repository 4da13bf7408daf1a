"""The example of the loop, by three processes that are killed in turn, as is the broker: each once.

One writes the loop by hand, one uses `transact` in the classic protocol, one in the newer one.
"""

import asyncio
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.brokers.apache_cluster import ApacheCluster
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess

from semel.client import Admin, Consumer, NewTopic, Producer, TopicPartition

EXAMPLE = Path(__file__).parents[2] / "examples" / "consume_transform_produce.py"
CLASSIC = ("session_timeout_ms=2000", "heartbeat_interval_ms=200", "max_poll_records=10")
WAYS = {
    "billing-1": ("by-hand", CLASSIC),
    "billing-2": ("transact", CLASSIC),
    "billing-3": ("transact", ("group_protocol=consumer", "max_poll_records=10")),
}
# The broker forgets a killed member after two seconds instead of 45.
IMPATIENT = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}
KAFKAS = {"kafka": ApacheKafka, "cluster": ApacheCluster}
INVOICES = [TopicPartition("invoices", index) for index in range(2)]
# What happens after how many invoices: members and the broker come and go.
STORY = ["billing-1", "broker", "billing-3", "billing-2", "broker"]
PER_CHAPTER = 60
ORDERS = PER_CHAPTER * (len(STORY) + 1)


class Mortal:
    """A broker that is killed and comes back; in a cluster, while the others have taken over."""

    def __init__(self, broker: SemelProcess | ApacheKafka | ApacheCluster) -> None:
        self.bootstrap = broker.bootstrap
        self._alone = not isinstance(broker, ApacheCluster)
        nodes = [broker] if self._alone else list(broker.nodes.values())
        self._nodes: deque[Any] = deque(nodes)
        self._dead: Any = None

    def die(self) -> None:
        if self._dead is not None:
            self._dead.start()
        self._nodes[0].kill()
        if self._alone:
            self._nodes[0].start()
        else:
            self._dead = self._nodes[0]
            self._nodes.rotate(-1)


@pytest.fixture(
    params=["semel", *(pytest.param(kind, marks=pytest.mark.interop) for kind in KAFKAS)]
)
def mortal(request: pytest.FixtureRequest) -> Iterator[Mortal]:
    kinds: dict[str, Any] = {"semel": SemelProcess, **KAFKAS}
    with kinds[request.param](settings=IMPATIENT) as broker:
        yield Mortal(broker)


class Members:
    """The example's processes: started again whenever they end, until all is over."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Members":
        self.keep_running()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._running:
            self.kill(name)

    def keep_running(self) -> None:
        for name, (way, settings) in WAYS.items():
            process = self._running.get(name)
            if process is None or process.poll() is not None:
                command = [sys.executable, str(EXAMPLE), self._bootstrap, way, name, *settings]
                self._running[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def kill(self, name: str) -> None:
        self._running[name].kill()
        self._running[name].wait()


@pytest.mark.slow
async def test_every_order_leads_to_one_invoice_whoever_dies(mortal: Mortal) -> None:
    async with Admin(mortal.bootstrap) as admin:
        await admin.create_topics([NewTopic("orders", 6), NewTopic("invoices", 2)])
    seen: list[bytes] = []
    chapters = list(STORY)
    with Members(mortal.bootstrap) as members:
        async with (
            Producer(mortal.bootstrap) as shop,
            Consumer(
                mortal.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
            ) as reader,
        ):
            reader.assign(INVOICES)
            ordered = 0
            while len(seen) < ORDERS:
                for number in range(ordered, min(ORDERS, len(seen) + 2 * PER_CHAPTER)):
                    await shop.send("orders", b"%d" % number, b"%d" % number)
                    ordered = number + 1
                seen += [record.value or b"" for record in await reader.poll(100)]
                if chapters and len(seen) >= PER_CHAPTER * (len(STORY) + 1 - len(chapters)):
                    await happens(chapters.pop(0), mortal, members)
                members.keep_running()
            ends = await reader.end_offsets(INVOICES)
            while any([await reader.position(place) < ends[place] for place in INVOICES]):
                seen += [record.value or b"" for record in await reader.poll(100)]
    assert not chapters
    assert Counter(seen) == Counter(b"invoice for %d" % number for number in range(ORDERS))


async def happens(to: str, broker: Mortal, members: Members) -> None:
    if to == "broker":
        await asyncio.to_thread(broker.die)
    else:
        members.kill(to)
