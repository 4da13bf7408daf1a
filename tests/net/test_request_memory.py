"""What requests take until they are answered is bounded over all connections."""

import pytest

from semel.net import memory
from semel.net.connection import FIRST_CHUNK

MEGABYTE = 1 << 20


@pytest.fixture
async def listener(start, answer):
    def receive(connection, frame):
        return answer(bytes(frame[:1]))

    listener = await start(receive)
    listener.memory.limit = 4 * MEGABYTE
    return listener


async def test_many_large_requests_at_once_are_all_answered_within_the_bound(
    listener, connect, until
):
    clients = [await connect(listener) for _ in range(12)]
    frame = bytes(3 * MEGABYTE)
    for client in clients:
        client.send(frame)
    for client in clients:
        assert await client.read(1) == b"\0"
    await until(lambda: listener.memory.held == 0)
    # The bound, a step of each, and the frame of the one that reads on whatever is held.
    assert listener.memory.most_held <= (4 + 12 + 3) * MEGABYTE


async def test_halves_of_requests_do_not_keep_small_ones_from_being_answered(
    listener, connect, until
):
    stalled = [await connect(listener) for _ in range(8)]
    for client in stalled:
        client.writer.write((8 * MEGABYTE).to_bytes(4, "big") + bytes(MEGABYTE))
    await until(lambda: listener.memory.is_full)
    other = await connect(listener)
    other.send(b"hello")
    assert await other.read(1) == b"h"
    assert listener.memory.held <= 8 * 2 * MEGABYTE


async def test_a_promise_of_bytes_costs_nothing(listener, connect, until):
    for _ in range(20):
        client = await connect(listener)
        client.writer.write((50 * MEGABYTE).to_bytes(4, "big") + b"x")
    await until(lambda: len(listener.connections) == 20)
    assert listener.memory.held <= 20 * FIRST_CHUNK


async def test_the_next_in_line_reads_when_the_first_is_done_or_gone(listener, connect, until):
    first, second = await connect(listener), await connect(listener)
    for client in (first, second):
        client.writer.write((6 * MEGABYTE).to_bytes(4, "big") + bytes(5 * MEGABYTE))
        held = listener.memory.held
        await until(lambda held=held: listener.memory.held > held + MEGABYTE // 2)
    await until(lambda: listener.memory._line)
    first.writer.close()
    second.writer.write(bytes(MEGABYTE))
    assert await second.read(1) == b"\0"
    await until(lambda: listener.memory.held == 0)


async def test_a_slow_one_that_others_wait_for_is_closed(
    listener, connect, until, monkeypatch, caplog
):
    monkeypatch.setattr(memory, "PATIENCE_SECONDS", -100.0)
    monkeypatch.setattr(memory, "LOOK_SECONDS", 0.0)
    slow = await connect(listener)
    slow.writer.write((6 * MEGABYTE).to_bytes(4, "big") + bytes(5 * MEGABYTE))
    await until(lambda: listener.memory._first is not None)
    other = await connect(listener)
    other.send(bytes(3 * MEGABYTE))
    assert await other.read(1) == b"\0"
    assert await slow.read_to_end() == b""
    assert "too slowly" in caplog.records[-1].reason


async def test_what_waits_for_its_answer_is_held_and_given_back(start, connect, until):
    slots = []

    def receive(connection, frame):
        slots.append(connection.reserve())

    listener = await start(receive)
    client = await connect(listener)
    client.send(bytes(MEGABYTE))
    await until(lambda: slots)
    assert listener.memory.held == MEGABYTE
    slots[0].fill(None)
    await until(lambda: listener.memory.held == 0)


async def test_what_a_closed_connection_held_is_given_back(start, connect, until):
    slots = []

    def receive(connection, frame):
        slots.append(connection.reserve())

    listener = await start(receive)
    client = await connect(listener)
    client.send(bytes(MEGABYTE))
    await until(lambda: slots)
    client.writer.close()
    await until(lambda: not listener.connections)
    assert listener.memory.held == 0
