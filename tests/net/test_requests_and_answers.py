"""Frames in, answers out: order, joining, holding back, and frames of any size and cut."""

import asyncio
import random
import select
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.net.connection import FIRST_CHUNK, SCRATCH_SIZE, Connection
from semel.net.listener import ListenerLimits


async def test_requests_sent_at_once_are_answered_in_order(start, connect, answer):
    listener = await start(lambda connection, frame: connection.reply(answer(bytes(frame))))
    client = await connect(listener)
    client.send(b"first", b"second", b"third")
    assert await client.read(16) == b"firstsecondthird"


async def test_an_answer_that_is_ready_early_waits_for_those_before_it(start, connect, answer):
    slots = {}
    both = asyncio.Event()

    def receive(connection, frame):
        slots[bytes(frame)] = connection.reserve()
        if len(slots) == 2:
            both.set()

    client = await connect(await start(receive))
    client.send(b"slow", b"fast")
    await both.wait()
    slots[b"fast"].fill(answer(b"FAST"))
    await asyncio.sleep(0)
    slots[b"slow"].fill(answer(b"SLOW"))
    assert await client.read(8) == b"SLOWFAST"


async def test_a_ready_answer_behind_an_open_one_keeps_its_place(start, connect, answer):
    slots = []

    def receive(connection, frame):
        if frame == b"open":
            slots.append(connection.reserve())
        else:
            connection.reply(answer(b"ready"))
            slots[0].fill(answer(b"opened"))

    client = await connect(await start(receive))
    client.send(b"open", b"at once")
    assert await client.read(11) == b"openedready"


async def test_a_request_without_an_answer_leaves_no_gap(start, connect, answer):
    def receive(connection, frame):
        if frame == b"silent":
            connection.reserve().fill(None)
        else:
            connection.reply(answer(b"heard"))

    client = await connect(await start(receive))
    client.send(b"silent", b"loud")
    assert await client.read(5) == b"heard"


async def test_answers_of_one_turn_leave_in_one_write(start, connect, answer, monkeypatch, until):
    writes = []
    really_send = socket.socket.send

    def send(self, content, *flags):
        if bytes(content).startswith(b"answer"):
            writes.append(bytes(content))
        return really_send(self, content, *flags)

    monkeypatch.setattr(socket.socket, "send", send)
    slots = []

    def receive(connection, frame):
        if frame == b"later":
            slots.append(connection.reserve())
        else:
            connection.reply(answer(b"answer"))

    client = await connect(await start(receive))
    client.send(b"a", b"b", b"c")
    assert await client.read(18) == b"answer" * 3
    assert writes == [b"answer" * 3]

    client.send(b"later", b"later")
    await until(lambda: len(slots) == 2)
    for slot in slots:
        slot.fill(answer(b"answer"))
    assert await client.read(12) == b"answer" * 2
    assert writes[1:] == [b"answer" * 2]


async def test_an_exclusive_request_holds_back_those_after_it(start, connect, answer):
    started = []
    slots = []
    first = asyncio.Event()

    def receive(connection, frame):
        started.append(bytes(frame))
        if frame == b"long":
            slots.append(connection.reserve(exclusive=True))
            first.set()
        else:
            connection.reply(answer(b"short!"))

    listener = await start(receive)
    client, other = await connect(listener), await connect(listener)
    client.send(b"long", b"short", b"short")
    await first.wait()
    other.send(b"short")  # another connection is not held back
    assert await other.read(6) == b"short!"
    assert started == [b"long", b"short"]
    slots[0].fill(answer(b"long!"))
    assert await client.read(17) == b"long!short!short!"


async def test_a_frame_much_larger_than_the_scratch_buffer_arrives_whole(start, connect, answer):
    received = []

    def receive(connection, frame):
        received.append(frame)
        connection.reply(answer(b"."))

    client = await connect(await start(receive))
    large = random.Random(7).randbytes(3 * FIRST_CHUNK + 17)
    client.send(b"before", large, b"after")
    assert await client.read(3) == b"..."
    assert received == [b"before", large, b"after"]


async def test_a_large_frame_is_filled_again_only_when_nobody_looks_into_it(start, connect, answer):
    kept = []

    def receive(connection, frame):
        kept.append(memoryview(frame)[:4] if frame[:4] == b"keep" else bytes(frame[:4]))
        connection.reply(answer(b"."))

    client = await connect(await start(receive))
    for word in (b"keep", b"one ", b"two ", b"keep", b"end "):
        client.send(word * SCRATCH_SIZE)
        assert await client.read(1) == b"."
    assert kept == [b"keep", b"one ", b"two ", b"keep", b"end "]


async def test_frames_of_changing_size_arrive_whole(start, connect, answer):
    received = []

    def receive(connection, frame):
        received.append(bytes(frame))
        connection.reply(answer(b"."))

    client = await connect(await start(receive))
    dice = random.Random(3)
    sent = [dice.randbytes(dice.randrange(SCRATCH_SIZE, 3 * FIRST_CHUNK)) for _ in range(12)]
    for frame in sent:
        client.send(frame)
        assert await client.read(1) == b"."
    assert received == sent


async def test_a_promise_of_a_large_frame_takes_no_memory_until_bytes_come(
    start, connect, answer, until
):
    listener = await start(lambda connection, frame: None)
    client = await connect(listener)
    client.writer.write((100 << 20).to_bytes(4, "big") + b"only this")
    await until(lambda: any(connection._frame for connection in listener.connections))
    (connection,) = listener.connections
    assert len(connection._frame) == FIRST_CHUNK


class Collector:
    """A listener without a socket."""

    limits = ListenerLimits(max_frame_size=1 << 24, max_waiting=10)

    def __init__(self):
        self.scratch = memoryview(bytearray(SCRATCH_SIZE))
        self.watcher = None  # nothing is ever too much here
        self.spare = None
        self.frames = []

    def finish(self):
        pass

    def receive(self, connection, frame):
        self.frames.append(bytes(frame))


@pytest.fixture(scope="module")
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@given(
    frames=st.lists(st.binary(min_size=1, max_size=50), max_size=20),
    cuts=st.lists(st.integers(1, 60), min_size=1, max_size=50),
)
def test_frames_arrive_the_same_however_the_stream_is_cut(loop, frames, cuts):
    collector = Collector()
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    with socket.create_server(("127.0.0.1", 0)) as door:
        theirs = socket.create_connection(door.getsockname())
        ours, _ = door.accept()
    with ours, theirs:
        connection = Connection(collector, loop, ours, ("nobody", 0))
        position, turn = 0, 0
        while position < len(stream):
            position += theirs.send(stream[position : position + cuts[turn % len(cuts)]])
            while select.select([ours], [], [], 0)[0]:
                connection.readable()
            turn += 1
    assert collector.frames == frames
