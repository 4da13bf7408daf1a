"""A listener with a service of the test's own, and plain sockets to talk to it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from semel.net.connection import Connection
from semel.net.listener import Listener, ListenerLimits
from semel.net.watching import new_loop

Start = Callable[..., Awaitable[Listener]]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Connections behave the same in an application's loop and in the broker's."""
    return {"any loop": asyncio.new_event_loop, "the broker's own loop": new_loop}


class Answer(bytearray):
    """A frame as the wire layer makes them: bytes, and regions to be spliced in."""

    def __init__(self, content: bytes = b"", regions: list | None = None) -> None:
        super().__init__(content)
        self.regions = regions or []


class Client:
    """The other end: frames out, bytes in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *requests: bytes) -> None:
        self.writer.write(b"".join(len(one).to_bytes(4, "big") + one for one in requests))

    async def read(self, count: int) -> bytes:
        return await self.reader.readexactly(count)

    async def read_to_end(self) -> bytes:
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts listeners that are stopped after the test."""
    listeners = []

    async def start_listener(
        receive: Callable[[Connection, bytearray], None], **limits: float
    ) -> Listener:
        listener = Listener(receive, ListenerLimits(**limits))
        await listener.start("127.0.0.1", 0)
        listeners.append(listener)
        return listener

    yield start_listener
    for listener in listeners:
        await listener.stop(patience_seconds=0)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[Listener], Awaitable[Client]]]:
    """Connects clients that are closed after the test."""
    clients = []

    async def connect_client(listener: Listener, receive_buffer: int = 0) -> Client:
        plain = socket.socket()
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", listener.port))
        client = Client(*await asyncio.open_connection(sock=plain, limit=1 << 12))
        clients.append(client)
        return client

    yield connect_client
    for client in clients:
        client.writer.close()


@pytest.fixture(scope="session")
def answer() -> type[Answer]:
    return Answer


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Lets the loop turn until something is so; pytest's timeout ends a wait in vain."""

    async def turn(condition: Callable[[], object]) -> None:
        while not condition():  # noqa: ASYNC110  (there is no event to wait for)
            await asyncio.sleep(0)

    return turn
