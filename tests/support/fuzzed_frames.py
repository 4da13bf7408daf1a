"""Requests of every API and version, whole and damaged, from a seed; and a broker that gets them.

Strings are mostly names that there are, numbers mostly small, so that many requests get far. Record
batches are real ones, some of them damaged.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections import Counter
from typing import Any
from uuid import UUID

from tests.wire.fuzz import DAMAGES, flip_bits, random_struct

from semel.broker import api
from semel.broker.server import Broker
from semel.net.connection import Connection
from semel.wire.batches import BatchBuilder
from semel.wire.compression import Compression
from semel.wire.messages import request_class

NAMES = ("t", "u", "g", "h", "x", "", "__consumer_offsets", "consumer", "range")
NUMBERS = (-2, -1, 0, 0, 0, 1, 1, 2, 3, 5, 10, 100)
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
#: Frames that are given before others have their turn, and before the connection ends.
AT_ONCE, PER_CONNECTION = 20, 1_000


class FuzzedFrames:
    """Without their lengths."""

    def __init__(self, seed: int, settings: Any) -> None:
        self.dice = random.Random(seed)
        self._batches = [self._batch(codec) for codec in Compression]
        self._corpus = [
            self._request(api_key, version)
            for api_key, versions in api.versions(settings).items()
            for version in versions
            if version in request_class(api_key).VERSIONS
            for _ in range(5)
        ]

    def next(self) -> bytearray:
        dice = self.dice
        chance = dice.random()
        if chance < 0.02:
            return bytearray(dice.randbytes(dice.choice((1, 8, 40, 400))))
        head, body = map(bytearray, dice.choice(self._corpus))
        if chance < 0.6:
            dice.choice(DAMAGES)(dice, body)
        if chance > 0.97:
            flip_bits(dice, head)
        return head + body

    def _request(self, api_key: int, version: int) -> tuple[bytes, bytes]:
        cls = request_class(api_key)
        name = self.dice.choice((b"a", b"client-1"))
        head = struct.pack(">hhih", api_key, version, self.dice.getrandbits(31), len(name)) + name
        if cls.is_flexible(version):
            head += b"\0"
        body = bytearray()
        random_struct(self.dice, cls, version, self._primitive).encode(body, version)
        return head, bytes(body)

    def _primitive(self, dice: random.Random, kind: str) -> Any:
        if kind in _BITS:
            if dice.random() < 0.8:
                return dice.choice(NUMBERS)
            return dice.randrange(-(1 << _BITS[kind] - 1), 1 << _BITS[kind] - 1)
        if kind == "boolean":
            return dice.random() < 0.5
        if kind == "uint16":
            return dice.randrange(1 << 16)
        if kind == "float64":
            return dice.uniform(-1e9, 1e9)
        if kind == "uuid":
            return UUID(int=dice.choice((0, 1, dice.getrandbits(128))))
        if kind == "string":
            return dice.choice(NAMES)
        return self._bytes(dice)

    def _bytes(self, dice: random.Random) -> bytes:
        batch = bytearray(dice.choice(self._batches))
        if dice.random() < 0.4:
            dice.choice(DAMAGES)(dice, batch)
        return bytes(batch)

    def _batch(self, codec: Compression) -> bytes:
        builder = BatchBuilder(compression=codec)
        for number in range(3):
            builder.append(b"k", b"v" * 50, 1_700_000_000_000 + number)
        return bytes(builder.build())


class DroppedSlot:
    """Nobody reads the answers."""

    def __init__(self, connection: FedConnection) -> None:
        self.connection = connection

    def fill(self, frame: Any) -> None:
        self.connection.counts["answered later"] += frame is not None

    def release(self) -> None: ...


class FedConnection(Connection):
    """Given frames without a network: a bad one is counted, and the next one is given all the
    same."""

    __slots__ = ("counts",)

    def __init__(self, broker: Broker, accepted: socket.socket, counts: Counter[str]) -> None:
        super().__init__(broker.listeners.first.net, broker.loop, accepted, ("127.0.0.1", 1))
        self.counts = counts

    def give(self, frame: bytearray) -> None:
        host = self._host
        self.counts["frames"] += 1
        is_short = len(frame) <= host.limits.short_frame_size
        answer = (host.receive if is_short else host.receive_large)(self, frame)
        host.finish()
        self.counts["answered"] += answer is not None

    def reply(self, frame: Any) -> None:
        self.counts["answered"] += 1

    def reserve(self, exclusive: bool = False) -> Any:
        return DroppedSlot(self)

    def close(self, reason: str | None = None) -> None:
        self.counts["refused"] += 1

    def end(self) -> None:
        self.closed = True
        for waiting in tuple(self.waits):
            waiting.abandon()


async def feed(broker: Broker, frames: FuzzedFrames, count: int) -> Counter[str]:
    """Give the broker so many frames; how they ended."""
    counts: Counter[str] = Counter()
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
    with ours:
        left = count
        while left > 0:
            connection = FedConnection(broker, ours, counts)
            for _ in range(min(left, PER_CONNECTION)):
                connection.give(frames.next())
                left -= 1
                if left % AT_ONCE == 0:
                    await asyncio.sleep(0)
            connection.end()
            await asyncio.sleep(0)
    return counts
