"""Brokers that die, come back, fall silent or are not there: every call ends, and work goes on."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.support.brokers.ports import free_port
from tests.support.brokers.process import SemelProcess

from semel.client import (
    Admin,
    Consumer,
    NewTopic,
    Producer,
    RetriableError,
    SemelError,
    TopicPartition,
    transact,
)
from semel.net.client_connection import ConnectionLost, Endpoint
from semel.net.client_opening import open_connection
from semel.wire.messages.metadata import MetadataRequest

QUICK = {"request_timeout_ms": 2_000, "socket_connection_setup_timeout_ms": 1_000}
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def mortal() -> SemelProcess:
    """A broker that a test may kill."""
    with SemelProcess({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


async def restart(broker: SemelProcess) -> None:
    await asyncio.to_thread(broker.kill)
    await asyncio.to_thread(broker.start)


@asynccontextmanager
async def impostor(handle: Handler) -> AsyncIterator[Endpoint]:
    """Something that listens and is no broker."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])


async def test_nobody_there_is_said_and_where() -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    with pytest.raises(RetriableError, match=rf"no broker can be reached.*{nowhere}"):
        await Producer(nowhere, max_block_ms=300).start()


async def test_a_broker_that_accepts_and_never_answers_does_not_hold_a_call_for_ever() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with impostor(silent) as endpoint:
        with pytest.raises(ConnectionLost, match="no connection within"):
            await open_connection(endpoint, client_id="c", timeout_s=0.2)
        with pytest.raises(RetriableError):
            await Producer(str(endpoint), max_block_ms=300, **QUICK).start()


async def test_a_stranger_that_talks_nonsense_is_not_believed() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with impostor(nonsense) as endpoint:
        with pytest.raises(ConnectionLost, match="is not a Kafka broker"):
            await open_connection(endpoint, client_id="c", timeout_s=5)


async def test_a_lost_connection_fails_everything_in_flight(mortal: SemelProcess) -> None:
    endpoint = Endpoint("127.0.0.1", mortal.port)
    connection = await open_connection(endpoint, client_id="c")
    await connection.request(MetadataRequest(topics=None), 5)
    mortal.kill()
    answers = [connection.request(MetadataRequest(topics=None), 5) for _ in range(3)]
    results = await asyncio.gather(*answers, return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionLost] * 3
    assert not connection.usable


async def test_a_request_past_its_deadline_takes_the_connection_with_it() -> None:
    async def deaf_after_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from semel.wire.frames import decode_request, encode_response
        from semel.wire.messages.api_versions import ApiVersionsResponse

        size = int.from_bytes(await reader.readexactly(4), "big")
        header, _ = decode_request(await reader.readexactly(size))
        keys = [ApiVersionsResponse.ApiVersion(api_key=3, min_version=0, max_version=13)]
        answer = ApiVersionsResponse(api_keys=keys)
        writer.write(encode_response(header.correlation_id, answer, header.api_version))
        await reader.read()
        writer.close()

    async with impostor(deaf_after_hello) as endpoint:
        connection = await open_connection(endpoint, client_id="c")
        with pytest.raises(ConnectionLost, match="not answered in time"):
            await connection.request(MetadataRequest(topics=None), 0.1)
        assert not connection.usable


async def test_records_survive_a_broker_that_is_killed_and_comes_back(
    mortal: SemelProcess,
) -> None:
    async with Producer(mortal.bootstrap, **QUICK) as producer:
        await producer.send_and_wait("t", b"-1")
        deliveries = []
        for number in range(300):
            deliveries.append(await producer.send("t", b"%d" % number))
            if number == 100:
                await restart(mortal)
            await asyncio.sleep(0)
        await producer.flush()
        assert len([await delivery for delivery in deliveries]) == 300
    async with Consumer(mortal.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        values: list[int] = []
        while len(values) < 301:
            values += [int(record.value or b"") for record in await consumer.poll(1_000)]
    assert values == list(range(-1, 300))  # once each, in order


async def test_a_commit_goes_through_though_the_coordinator_dies_before_it(
    mortal: SemelProcess,
) -> None:
    async with Producer(mortal.bootstrap, transactional_id="t", **QUICK) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"1")
        await restart(mortal)
        await producer.commit_transaction()
        async with producer.transaction():
            await producer.send("t", b"2")
    async with Consumer(
        mortal.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([("t", 0)])
        values: list[bytes | None] = []
        while len(values) < 2:
            values += [record.value for record in await consumer.poll(1_000)]
    assert values == [b"1", b"2"]


async def test_a_commit_without_an_answer_says_so_and_can_be_asked_again(
    mortal: SemelProcess,
) -> None:
    async with Producer(mortal.bootstrap, transactional_id="t", **QUICK) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("t", b"1")
        mortal.kill()
        with pytest.raises(RetriableError, match="call commit_transaction again"):
            await producer.commit_transaction(timeout_ms=300)
        with pytest.raises(SemelError, match="call commit_transaction again"):
            await producer.abort_transaction()
        await asyncio.to_thread(mortal.start)
        await producer.commit_transaction()
        async with producer.transaction():
            await producer.send("t", b"2")


async def test_a_full_buffer_waits_and_then_says_so(mortal: SemelProcess) -> None:
    given = {"buffer_memory": 100_000, "max_block_ms": 300, "delivery_timeout_ms": 60_000}
    async with Producer(mortal.bootstrap, **given, **QUICK) as producer:
        await producer.send_and_wait("t", b"")
        mortal.kill()
        sending = asyncio.gather(*(producer.send("t", bytes(1_000)) for _ in range(1_000)))
        with pytest.raises(RetriableError, match="buffer of 100000 bytes is full"):
            await sending
        assert producer._accumulator.buffered <= 100_000
        await asyncio.to_thread(mortal.start)
        await producer.flush(30_000)


async def test_the_loop_of_the_notes_loses_nothing_and_doubles_nothing_through_it_all(
    mortal: SemelProcess,
) -> None:
    """Consume–transform–produce by two members that come and go, over a broker that is killed."""
    total = 600
    async with Admin(mortal.bootstrap) as admin:
        await admin.create_topics([NewTopic("in", 4), NewTopic("out", 2)])
    async with Producer(mortal.bootstrap) as producer:
        for number in range(total):
            await producer.send("in", b"%d" % number, b"%d" % number)
    done = asyncio.Event()
    seen: list[int] = []
    progress = asyncio.Condition()

    async def member(name: str, most: int | None) -> None:
        given = {"max_poll_records": 20, "heartbeat_interval_ms": 200, "session_timeout_ms": 6_000}
        async with transact(
            mortal.bootstrap, inputs=["in"], group_id="g", transactional_id=name, **given, **QUICK
        ) as batches:
            moved = 0
            async for batch in batches:
                for record in batch.records:
                    await batch.send("out", record.value, record.key)
                moved += len(batch)
                if done.is_set() or (most is not None and moved >= most):
                    batches.stop()

    async def kill_twice() -> None:
        for reached in (total // 6, total // 2):
            async with progress:
                await progress.wait_for(lambda reached=reached: len(seen) >= reached)
            await restart(mortal)

    async def watch() -> None:
        async with Consumer(
            mortal.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            **QUICK,
        ) as consumer:
            places = [TopicPartition("out", 0), TopicPartition("out", 1)]
            consumer.assign(places)
            while len(seen) < total:
                seen.extend(int(record.value or b"") for record in await consumer.poll(500))
                async with progress:
                    progress.notify_all()

    members = [asyncio.create_task(member(f"{uuid.uuid4()}", most)) for most in (100, None, None)]
    killer = asyncio.create_task(kill_twice())
    await watch()
    await killer
    done.set()
    for task in members:
        task.cancel()
    await asyncio.gather(*members, return_exceptions=True)
    assert sorted(seen) == list(range(total))
