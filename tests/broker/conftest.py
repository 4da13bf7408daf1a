"""A broker in this process, and a way to ask it anything over a real connection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.support.disks import FaultyFiles

from semel.broker.partitions.partitions import Partitions
from semel.broker.server import Broker
from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.schema import Message

Ask = Callable[..., Awaitable[Any]]


@pytest.fixture
async def start_broker(tmp_path) -> AsyncIterator[Callable[..., Awaitable[Broker]]]:
    """Starts brokers that are stopped after the test: `start_broker(num_partitions=3)`."""
    brokers = []

    async def start(data: Any = None, **settings: Any) -> Broker:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        broker = Broker(data or tmp_path / "data", settings=named)
        await broker.start()
        brokers.append(broker)
        return broker

    yield start
    for broker in brokers:
        await broker.stop()


@pytest.fixture
def disk(tmp_path, monkeypatch) -> FaultyFiles:
    """The disk under brokers started after this, which fails when told to."""
    (tmp_path / "data").mkdir()
    disk = FaultyFiles(tmp_path / "data")
    monkeypatch.setattr(Partitions, "files", disk)
    return disk


class HeldSyncs:
    """The disk takes its time: no sync is done before the test says so."""

    def __init__(self, broker: Broker) -> None:
        self._done: list[Callable[[OSError | None], None]] = []
        broker.partitions.store.syncer.run = lambda work, done: self._done.append(done)

    def release(self) -> None:
        while self._done:
            self._done.pop(0)(None)


@pytest.fixture
def hold_syncs() -> type[HeldSyncs]:
    return HeldSyncs


@pytest.fixture
async def broker(start_broker) -> Broker:
    return await start_broker()


class Asker:
    """One connection; `await ask(request, version)` is the response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_id = 0

    async def __call__(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return await self.receive(request.API_KEY, version)

    def send(self, request: Message, version: int) -> None:
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, "tester")
        self.writer.write(encode_request(header, request))

    async def receive(self, api_key: int, version: int) -> Any:
        frame = await self.receive_frame()
        _, response = decode_response(frame, api_key, version)
        return response

    async def receive_frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[Broker], Awaitable[Asker]]]:
    askers = []

    async def connect_to(broker: Broker) -> Asker:
        asker = Asker(*await asyncio.open_connection("127.0.0.1", broker.port))
        askers.append(asker)
        return asker

    yield connect_to
    for asker in askers:
        asker.writer.close()


@pytest.fixture
async def ask(broker, connect) -> Ask:
    return await connect(broker)


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Lets the loop turn until something is so; pytest's timeout ends a wait in vain."""

    async def turn(condition: Callable[[], object]) -> None:
        while not condition():  # noqa: ASYNC110  (there is no event to wait for)
            await asyncio.sleep(0)

    return turn
