"""Frames in, answers out: order, joining, holding back, and frames of any size and cut."""

import asyncio
import random
import select
import socket
import struct
from bisect import bisect_right
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.net import connection as connections
from semel.net.connection import FIRST_CHUNK, SCRATCH_SIZE, Connection
from semel.net.listener import ListenerLimits
from semel.net.memory import RequestMemory
from semel.net.turns import Turns
from semel.net.watching import serve


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


class Echo:
    """A listener without a socket. A frame's first byte says how it wants to be answered."""

    limits = ListenerLimits(max_frame_size=1 << 24, max_waiting=10_000)
    name, principal = "ECHO", None

    def __init__(self, answer):
        self.scratch = bytearray(SCRATCH_SIZE)
        self.watcher = None  # nothing is ever too much here
        self.spare = None
        self.memory = RequestMemory()
        self.turns = Turns()
        self.frames, self.answers = [], []
        self._answer = answer
        self._later, self._gathered = [], []

    def receive(self, connection, frame):
        self.frames.append(bytes(frame))
        answer = self._answer(b"<%d>" % len(self.frames))
        way = frame[0] % 6
        if way < 5:
            self.answers.append(bytes(answer))
        if way == 1:
            connection.reply(answer)
        elif way == 2:
            self._later.append((connection.reserve(), answer))
        elif way == 3:
            self._gathered.append((connection.reserve(), answer))
        elif way == 4:
            return self._answer(b"", [(0, Memory(answer))])
        return answer if way == 0 else None

    def finish(self):
        self._fill(self._gathered)

    def fill(self):
        self._fill(self._later)

    def _fill(self, slots):
        while slots:  # the last comes first, and goes last all the same
            slot, answer = slots.pop()
            slot.fill(answer)


class Memory(bytes):
    fd, position = -1, 0


@pytest.fixture(scope="module")
def loop():
    loop = asyncio.new_event_loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "TURN_SECONDS", 3600)  # no turn ends because we are slow
        yield loop
    loop.close()


@given(
    frames=st.lists(st.binary(min_size=1, max_size=50), max_size=20),
    cuts=st.lists(st.none() | st.integers(1, 60), min_size=1, max_size=50),
)
def test_requests_and_answers_are_the_same_however_the_stream_is_cut(loop, answer, frames, cuts):
    """A cut of None is where the frame ends: whole frames come alone most often."""
    echo = Echo(answer)
    ends = list(accumulate(4 + len(frame) for frame in frames))
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    answered = b""
    with socket.create_server(("127.0.0.1", 0)) as door:
        theirs = socket.create_connection(door.getsockname())
        ours, _ = door.accept()
    with ours, theirs:
        theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what is sent is there
        connection = Connection(echo, loop, ours, ("nobody", 0))
        position, turn = 0, 0
        while position < len(stream):
            cut = cuts[turn % len(cuts)]
            end = position + cut if cut else ends[bisect_right(ends, position)]
            position += theirs.send(stream[position:end])
            while select.select([ours], [], [], 0)[0]:
                serve(connection)
            turn += 1
            if turn % 3 == 0:
                echo.fill()
                loop.run_until_complete(asyncio.sleep(0))
        echo.fill()
        loop.run_until_complete(asyncio.sleep(0))
        assert connection.is_settled
        ours.shutdown(socket.SHUT_WR)
        while more := theirs.recv(1 << 16):
            answered += more
    assert echo.frames == frames
    assert answered == b"".join(echo.answers)


async def test_an_answer_at_once_that_the_socket_takes_in_parts_arrives_whole(
    start, connect, answer
):
    content = bytes(range(256)) * (1 << 15)
    client = await connect(await start(lambda connection, frame: answer(content)))
    for _ in range(2):
        client.send(b"more")
        assert await client.read(len(content)) == content


async def test_an_answer_at_once_to_a_client_that_left_ends_the_connection(start, answer, until):
    heard = []

    def receive(connection, frame):
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        heard.append(connection)
        return answer(b"heard")

    listener = await start(receive)
    theirs = socket.create_connection(("127.0.0.1", listener.port))
    theirs.sendall(b"\0\0\0\1x")
    await until(lambda: heard and not listener.connections)
    assert heard[0].closed
