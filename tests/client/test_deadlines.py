"""Every call has a deadline that holds, and ends with an exception of the right kind.

All other patience is set to an hour, so that a call which ends at all has kept its own deadline.
Between client and broker lies a line that falls silent, breaks, or is not there; afterwards it is
mended, and the same client goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import pytest
from tests.support.brokers.ports import free_port
from tests.support.brokers.process import SemelProcess

from semel.client import (
    Admin,
    Consumer,
    GroupMetadata,
    Ledger,
    Producer,
    RetriableError,
    TopicPartition,
    transact,
)

HOUR = 3_600_000
PATIENT = {"request_timeout_ms": HOUR, "socket_connection_setup_timeout_ms": HOUR}
SHORT_MS = 200
FAULTS = ["silent", "broken", "absent"]
PLACE = TopicPartition("t", 0)
T = TypeVar("T")


class Line:
    """A way to the broker that can fail. Listens on one port, whatever happens."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.bootstrap = f"127.0.0.1:{port}"
        self._port, self._broker_port = port, broker_port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.fault: str | None = None

    async def mend(self) -> None:
        self.fault = None  # first: who is hung up on calls again at once
        await self._hang_up()
        await self._listen()

    async def fail(self, fault: str) -> None:
        """silent: nothing comes through any more; broken: hangs up; absent: nobody listens."""
        self.fault = fault
        if fault != "silent":
            await self._hang_up()
        if fault == "absent":
            await self._close_door()

    async def close(self) -> None:
        await self._hang_up()
        await self._close_door()

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._carry, "127.0.0.1", self._port)

    async def _close_door(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _hang_up(self) -> None:
        for writer in self._writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writers.clear()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.fault == "broken":
            writer.close()
            return
        back, out = await asyncio.open_connection("127.0.0.1", self._broker_port)
        self._writers.add(out)
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._pump(reader, out), self._pump(back, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self.fault is None:
                writer.write(data)
                await writer.drain()
        if self.fault is None:
            writer.close()


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    outside = free_port()
    settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{outside}"}
    with SemelProcess(settings) as broker:
        yield outside, broker.port


@pytest.fixture
async def line(ports: tuple[int, int]) -> AsyncIterator[Line]:
    line = Line(*ports)
    await line.mend()
    yield line
    await line.close()


async def until_it_works(call: Callable[[], Awaitable[T]]) -> T:
    """What a RetriableError asks for: the same call again. Also for what comes before the fault:
    on a busy machine it may take longer than the short deadline."""
    while True:
        with suppress(RetriableError):
            return await call()


async def ends_in_time(call: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(RetriableError):
        await call()


@pytest.mark.parametrize("fault", FAULTS)
async def test_nothing_starts_without_a_broker(line: Line, fault: str) -> None:
    await line.fail(fault)
    given = {**PATIENT, "default_api_timeout_ms": SHORT_MS}
    await ends_in_time(Admin(line.bootstrap, **given).start)
    await ends_in_time(Consumer(line.bootstrap, **given).start)
    await ends_in_time(Producer(line.bootstrap, max_block_ms=SHORT_MS, **PATIENT).start)
    await ends_in_time(lambda: Ledger(line.bootstrap, **given).last("a"))
    loop = transact(
        line.bootstrap, inputs=["t"], group_id="g", transactional_id="t", max_block_ms=SHORT_MS,
        **PATIENT,
    )  # fmt: skip
    await ends_in_time(loop.__aenter__)


async def test_a_name_that_nobody_knows_is_said_to_be_one() -> None:
    nowhere = "no-such-host.invalid:9092"
    with pytest.raises(RetriableError, match=r"no broker can be reached.*no-such-host"):
        await Consumer(nowhere, default_api_timeout_ms=SHORT_MS, **PATIENT).start()
    with pytest.raises(RetriableError, match="no-such-host"):
        await Producer(nowhere, max_block_ms=SHORT_MS, **PATIENT).start()


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_call_of_a_producer_ends_and_work_goes_on(line: Line, fault: str) -> None:
    given = {"transactional_id": f"p-{fault}", "delivery_timeout_ms": HOUR, **PATIENT}
    producer = Producer(line.bootstrap, max_block_ms=SHORT_MS, **given)
    await until_it_works(producer.start)
    async with producer:
        await producer.init_transactions(HOUR)
        await until_it_works(lambda: producer.partitions_for("t"))
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"1")
        await line.fail(fault)
        await ends_in_time(lambda: producer.send(f"new-{fault}", b"x"))
        await producer.send("t", b"2")
        await ends_in_time(producer.flush)
        await ends_in_time(
            lambda: producer.send_offsets_to_transaction({PLACE: 1}, GroupMetadata(fault))
        )
        await ends_in_time(producer.commit_transaction)
        await line.mend()
        await producer.commit_transaction(HOUR)
        async with producer.transaction():
            await producer.send("t", b"3")


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_call_of_a_consumer_ends_and_work_goes_on(line: Line, fault: str) -> None:
    async with Producer(line.bootstrap) as producer:
        await producer.send_and_wait("t", b"1")
    given = {"group_id": f"c-{fault}", "auto_offset_reset": "earliest", **PATIENT}
    consumer = Consumer(line.bootstrap, default_api_timeout_ms=SHORT_MS, **given)
    await until_it_works(consumer.start)
    async with consumer:
        consumer.assign([PLACE])
        while not await consumer.poll(1_000):
            pass
        await consumer.commit(timeout_ms=HOUR)
        await line.fail(fault)
        consumer.seek_to_beginning(PLACE)
        assert await consumer.poll(SHORT_MS) == []
        await ends_in_time(lambda: consumer.position(PLACE))
        await ends_in_time(lambda: consumer.commit({PLACE: 1}))
        await ends_in_time(lambda: consumer.committed([PLACE]))
        await ends_in_time(lambda: consumer.end_offsets([PLACE]))
        await ends_in_time(lambda: consumer.offsets_for_times({PLACE: 0}))
        await ends_in_time(lambda: consumer.partitions_for(f"new-{fault}"))
        await line.mend()
        while not (records := await consumer.poll(1_000)):
            pass
        assert records[0].offset == 0
        await consumer.commit(timeout_ms=HOUR)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_polls_of_a_member_end_and_it_comes_back_to_its_group(
    line: Line, fault: str, protocol: str
) -> None:
    async with Producer(line.bootstrap) as producer:
        await producer.send_and_wait("t", b"1")
    given = {"group_protocol": protocol, "auto_offset_reset": "earliest"}
    consumer = Consumer(
        line.bootstrap, group_id=f"m-{fault}-{protocol}", default_api_timeout_ms=SHORT_MS, **given,
        request_timeout_ms=1_000, socket_connection_setup_timeout_ms=1_000,
    )  # fmt: skip
    await until_it_works(consumer.start)
    async with consumer:
        await line.fail(fault)
        consumer.subscribe(["t"])
        assert await consumer.poll(SHORT_MS) == []  # it cannot join
        await line.mend()
        while not await consumer.poll(1_000):
            pass
        await line.fail(fault)
        assert await consumer.poll(SHORT_MS) == []
        await ends_in_time(consumer.commit)
        await line.mend()
        await consumer.commit(timeout_ms=HOUR)


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_call_of_an_administrator_ends_and_work_goes_on(line: Line, fault: str) -> None:
    async with Admin(line.bootstrap) as patient:
        await patient.create_topics([f"a-{fault}"])
    admin = Admin(line.bootstrap, default_api_timeout_ms=SHORT_MS, **PATIENT)
    await until_it_works(admin.start)
    async with admin:
        await line.fail(fault)
        for call in (
            lambda: admin.create_topics(["b"]),
            lambda: admin.delete_topics(["b"]),
            admin.list_topics,
            lambda: admin.describe_configs("b"),
            admin.list_groups,
            lambda: admin.describe_group("g"),
            lambda: admin.group_lag("g"),
            admin.list_transactions,
            lambda: admin.describe_transaction("t"),
            lambda: admin.fence_producer("t"),
        ):
            await ends_in_time(call)
        await line.mend()
        assert f"a-{fault}" in await until_it_works(admin.list_topics)
