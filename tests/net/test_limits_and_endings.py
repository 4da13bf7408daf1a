"""What a listener refuses, whom it closes and how it stops."""

import asyncio

import pytest


@pytest.mark.parametrize(
    ("length", "size"), [(0, 0), (0, 10), (-1, 10), (1001, 10), (1001, 1001), (2**31 - 1, 10)]
)
async def test_a_frame_out_of_bounds_closes_the_connection_and_says_why(
    start, connect, caplog, length, size
):
    started = []
    listener = await start(lambda connection, frame: started.append(frame), max_frame_size=1000)
    client = await connect(listener)
    client.writer.write(length.to_bytes(4, "big", signed=True) + b"x" * size)
    assert await client.read_to_end() == b""
    assert not started
    (line,) = caplog.records
    assert line.reason == f"frame of {length} bytes, allowed are 1 to 1000"
    assert line.peer.startswith("127.0.0.1:")


async def test_a_connection_beyond_the_limit_is_closed_and_the_others_live(
    start, connect, answer, caplog
):
    listener = await start(
        lambda connection, frame: connection.reply(answer(b"yes")), max_connections=2
    )
    kept = [await connect(listener), await connect(listener)]
    refused = await connect(listener)
    assert await refused.read_to_end() == b""
    assert [line.reason for line in caplog.records] == ["max.connections=2 reached"]
    for client in kept:
        client.send(b"still there?")
        assert await client.read(3) == b"yes"


async def test_a_place_is_free_again_when_a_client_leaves(start, connect, answer, until):
    listener = await start(
        lambda connection, frame: connection.reply(answer(b"yes")), max_connections_per_address=1
    )
    first = await connect(listener)
    first.send(b"here")
    assert await first.read(3) == b"yes"
    first.writer.close()
    await until(lambda: not listener.connections)
    second = await connect(listener)
    second.send(b"here")
    assert await second.read(3) == b"yes"


async def test_one_address_cannot_take_all_places(start, connect, caplog):
    listener = await start(lambda connection, frame: None, max_connections_per_address=1)
    await connect(listener)
    refused = await connect(listener)
    assert await refused.read_to_end() == b""
    assert [line.reason for line in caplog.records] == ["max.connections.per.ip=1 reached"]


async def test_an_idle_connection_is_closed(start, connect, caplog):
    listener = await start(lambda connection, frame: None, idle_seconds=0.05)
    client = await connect(listener)
    assert await client.read_to_end() == b""
    assert [line.reason for line in caplog.records] == ["idle for 0.05 s"]


async def test_a_connection_that_waits_for_its_answer_is_not_idle(start, connect, answer, until):
    """The answer comes long after the idle time; another, idle connection measures that time."""
    slots = []
    listener = await start(
        lambda connection, frame: slots.append(connection.reserve()), idle_seconds=0.05
    )
    waiting = await connect(listener)
    waiting.send(b"wait")
    await until(lambda: slots)
    for _ in range(2):
        idle = await connect(listener)
        await idle.read_to_end()
    slots[0].fill(answer(b"at last"))
    assert await waiting.read(7) == b"at last"


async def test_a_client_that_never_takes_its_answers_is_closed(
    start, connect, answer, caplog, until
):
    huge = answer(bytes(64 << 20))
    listener = await start(lambda connection, frame: connection.reply(huge), idle_seconds=0.1)
    client = await connect(listener, receive_buffer=4096)
    client.send(b"give")
    await until(lambda: caplog.records)
    assert caplog.records[0].reason == "idle for 0.1 s"
    assert len(await client.read_to_end()) < len(huge)


async def test_stopping_answers_what_was_started_and_nothing_else(start, connect, answer, until):
    slots = []
    listener = await start(lambda connection, frame: slots.append(connection.reserve()))
    client, idle = await connect(listener), await connect(listener)
    client.send(b"started")
    await until(lambda: slots)
    stopping = asyncio.ensure_future(listener.stop(patience_seconds=60))
    assert await idle.read_to_end() == b""
    client.send(b"too late")
    await asyncio.sleep(0)
    slots[0].fill(answer(b"answered"))
    assert await client.read_to_end() == b"answered"
    await stopping
    assert len(slots) == 1
    with pytest.raises(ConnectionRefusedError):
        await connect(listener)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_request_after_the_last_answer_is_not_started(start, connect, answer, until, waits):
    slots = []
    listener = await start(lambda connection, frame: slots.append(connection.reserve()))
    client = await connect(listener)
    if waits:
        client.send(b"started")
    await until(lambda: listener.connections and len(slots) == waits)
    (connection,) = listener.connections
    connection.drain()
    for slot in slots:
        slot.fill(answer(b"answered"))
    assert await client.read_to_end() == b"answered" * waits
    client.send(b"too late")
    await until(lambda: not listener.connections)
    assert len(slots) == waits


async def test_stopping_does_not_wait_for_ever(start, connect, caplog):
    started = asyncio.Event()

    def receive(connection, frame):
        connection.reserve()  # and never filled
        started.set()

    listener = await start(receive)
    client = await connect(listener)
    client.send(b"question")
    await started.wait()
    await listener.stop(patience_seconds=0.01)
    assert await client.read_to_end() == b""
    assert not listener.connections
