"""One connection that sends much at once: others are served in between, and nothing is lost."""

import asyncio

import pytest

from semel.net import connection as connections
from semel.net import turns as turns_module


@pytest.fixture
async def turns():
    """How often the loop has turned so far."""
    loop = asyncio.get_running_loop()
    count = [0]

    def turn():
        count[0] += 1
        handle[0] = loop.call_soon(turn)

    handle = [loop.call_soon(turn)]
    yield count
    handle[0].cancel()


@pytest.fixture
def started_in(start, answer, turns):
    """A listener that answers with the request, and the turn of the loop in which each started."""

    async def listen():
        seen = []

        def receive(connection, frame):
            seen.append(turns[0])
            connection.reply(answer(bytes(frame)))

        return await start(receive), seen

    return listen


def most_in_one_turn(seen):
    return max(seen.count(turn) for turn in set(seen))


async def test_so_many_requests_of_one_connection_are_started_in_one_turn(started_in, connect):
    listener, seen = await started_in()
    client = await connect(listener)
    requests = [b"%04d" % number for number in range(1_500)]
    client.send(*requests)
    assert await client.read(6_000) == b"".join(requests)
    assert most_in_one_turn(seen) <= connections.MOST_PER_TURN


async def test_a_turn_ends_with_a_request_that_took_long(started_in, connect, monkeypatch):
    monkeypatch.setattr(connections, "TURN_SECONDS", -1)  # every request takes longer
    listener, seen = await started_in()
    client = await connect(listener)
    requests = [b"%04d" % number for number in range(200)]
    client.send(*requests)
    assert await client.read(800) == b"".join(requests)
    assert most_in_one_turn(seen) == 1


async def test_another_connection_is_served_in_between(started_in, connect, until):
    listener, seen = await started_in()
    crowd, victim = await connect(listener), await connect(listener)
    await until(lambda: len(listener.connections) == 2)
    crowd.send(*[b"crowd"] * 1_500)
    victim.send(b"victim")
    assert await victim.read(6) == b"victim"
    assert len(seen) < 1_000
    assert await crowd.read(7_500) == b"crowd" * 1_500


async def test_many_busy_connections_hold_up_another_no_longer_than_one(
    started_in, connect, until, monkeypatch
):
    monkeypatch.setattr(connections, "TURN_SECONDS", 1e9)  # by number alone
    monkeypatch.setattr(turns_module, "TURN_SECONDS", -1)
    listener, seen = await started_in()
    crowd = [await connect(listener) for _ in range(30)]
    await until(lambda: len(listener.connections) == 30)
    for client in crowd:
        client.send(*[b"crowd"] * 300)
    for client in crowd:
        assert await client.read(1_500) == b"crowd" * 300
    # A whole turn of the first, of the one whose turn it is, and one request of each that comes.
    assert most_in_one_turn(seen) <= 2 * connections.MOST_PER_TURN + 30


class Waiting:
    def __init__(self, connection):
        self.connection = connection
        self.abandoned = 0
        connection.waits.add(self)

    def abandon(self):
        self.abandoned += 1
        self.connection.waits.discard(self)


async def test_what_waits_for_a_client_is_told_when_the_client_has_gone(start, connect, until):
    waiting = []

    def receive(connection, frame):
        connection.reserve()
        waiting.append(Waiting(connection))

    listener = await start(receive)
    client = await connect(listener)
    client.send(b"one", b"two")
    await until(lambda: len(waiting) == 2)
    client.writer.close()
    await until(lambda: not listener.connections)
    assert [one.abandoned for one in waiting] == [1, 1]
