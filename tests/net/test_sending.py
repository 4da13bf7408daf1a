"""Sending: regions of files in their places, and clients that read slowly or not at all."""

import os
import random

import pytest

from semel.net.connection import MOST_UNSENT
from semel.net.outbox import SMALLEST_SENDFILE


class Region:
    """A stretch of a file, as the store hands them out."""

    def __init__(self, fd: int, position: int, length: int) -> None:
        self.fd, self.position, self.length = fd, position, length

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        return os.pread(self.fd, self.length, self.position)


@pytest.fixture
def content() -> bytes:
    return random.Random(3).randbytes(12 << 20)


@pytest.fixture
def file(tmp_path, content):
    path = tmp_path / "records"
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("length", [1, SMALLEST_SENDFILE - 1, SMALLEST_SENDFILE, 12 << 20])
async def test_regions_are_spliced_into_their_places(start, connect, answer, file, content, length):
    whole, small = Region(file, 0, length), Region(file, 5, 3)
    frame = answer(b"<>[](end)", [(1, whole), (3, small)])
    client = await connect(await start(lambda connection, request: connection.reply(frame)))
    client.send(b"fetch", b"fetch")
    expected = b"<" + content[:length] + b">[" + content[5:8] + b"](end)"
    assert await client.read(2 * len(expected)) == 2 * expected


async def test_an_answer_after_a_long_region_keeps_its_place(start, connect, answer, file, content):
    def receive(connection, request):
        if request == b"fetch":
            connection.reply(answer(b"()", [(1, Region(file, 0, len(content)))]))
        else:
            connection.reply(answer(b"small"))

    client = await connect(await start(receive), receive_buffer=4096)
    client.send(b"fetch", b"other", b"fetch", b"other")
    expected = b"(" + content + b")small"
    for _ in range(2):
        assert await client.read(len(expected)) == expected


async def test_a_region_in_memory_is_sent_too(start, connect, answer):
    class InMemory(Region):
        def __bytes__(self) -> bytes:
            return b"m" * self.length

    region = InMemory(-1, 0, 2 * SMALLEST_SENDFILE)
    frame = answer(b"<>", [(1, region)])
    client = await connect(await start(lambda connection, request: connection.reply(frame)))
    client.send(b"fetch")
    assert await client.read(len(region) + 2) == b"<" + b"m" * len(region) + b">"


async def test_a_file_shorter_than_promised_closes_the_connection(
    start, connect, answer, file, content, caplog
):
    frame = answer(b"<>", [(1, Region(file, len(content) - 10, SMALLEST_SENDFILE))])
    client = await connect(await start(lambda connection, request: connection.reply(frame)))
    client.send(b"fetch")
    assert await client.read_to_end() == b"<" + content[-10:]
    assert caplog.records[0].reason == f"a file ended {SMALLEST_SENDFILE - 10} bytes early"


async def test_a_slow_reader_is_not_read_from_until_it_reads(start, connect, answer, until):
    """Its requests stop being started long before all are; every answer still arrives, in order."""
    started = 0
    size = 100_000
    total = 400

    def receive(connection, request):
        nonlocal started
        started += 1
        connection.reply(answer(bytes(request) * (size // 4)))

    listener = await start(receive)
    slow, quick = await connect(listener, receive_buffer=4096), await connect(listener)
    slow.send(*(f"{number:04}".encode() for number in range(total)))
    await until(lambda: any(connection._inbox for connection in listener.connections))
    assert started < total
    assert started * size < MOST_UNSENT + 10 * size + (8 << 20)  # what sockets themselves buffer

    quick.send(b"0000")
    assert await quick.read(size) == b"0000" * (size // 4)

    for number in range(total):
        assert await slow.read(size) == f"{number:04}".encode() * (size // 4)
    assert started == total + 1


async def test_a_request_waits_while_the_answer_before_it_is_not_taken(
    start, connect, answer, until
):
    started, size = [], 8 * MOST_UNSENT

    def receive(connection, request):
        started.append(bytes(request))
        return answer(bytes(request) * size)

    listener = await start(receive)
    client = await connect(listener, receive_buffer=4096)
    client.send(b"a")
    await until(lambda: started)
    client.send(b"b")
    (connection,) = listener.connections
    await until(lambda: connection._inbox or len(started) > 1)
    assert started == [b"a"]
    assert await client.read(2 * size) == b"a" * size + b"b" * size


async def test_a_client_that_asks_too_much_at_once_is_held_back(start, connect, answer, until):
    slots = []
    listener = await start(
        lambda connection, request: slots.append(connection.reserve()), max_waiting=3
    )
    client = await connect(listener)
    client.send(*[b"question"] * 10)
    await until(lambda: len(slots) == 3)
    assert len(slots) == 3
    for number in range(10):
        await until(lambda number=number: len(slots) > number)
        slots[number].fill(answer(b"%d" % number))
    assert await client.read(10) == b"0123456789"


async def test_a_client_that_leaves_in_the_middle_of_a_region_harms_nobody(
    start, connect, answer, file, content, until
):
    frame = answer(b"<>", [(1, Region(file, 0, len(content)))])
    listener = await start(lambda connection, request: connection.reply(frame))
    leaving, staying = await connect(listener, receive_buffer=4096), await connect(listener)
    leaving.send(b"fetch")
    await leaving.read(100)
    leaving.writer.transport.abort()
    staying.send(b"fetch")
    assert await staying.read(len(content) + 2) == b"<" + content + b">"
    await until(lambda: len(listener.connections) == 1)
