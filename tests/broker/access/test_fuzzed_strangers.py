"""Whatever a stranger sends, it is answered or closed, and nobody else notices."""

import asyncio
import random

import pytest

from semel.wire.messages.metadata import MetadataRequest

METADATA = MetadataRequest(topics=[])
SEED = 20_261_117
FRAMES = 400


def frames(dice: random.Random):
    """Requests of SASL and ApiVersions that are nearly right, and noise."""
    while True:
        key = dice.choice((17, 18, 36, 3, 0, dice.randrange(-100, 100)))
        head = key.to_bytes(2, "big", signed=True) + dice.randbytes(2)
        if dice.random() < 0.7:
            head = key.to_bytes(2, "big", signed=True) + bytes([0, dice.randrange(5)])
        body = head + dice.randbytes(4) + dice.choice((b"\xff\xff", b"\0\1a", dice.randbytes(2)))
        body += dice.randbytes(dice.randrange(40))
        yield len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_frames_of_strangers_are_answered_or_closed(secure, connect_to, until, listener):
    dice = random.Random(SEED)
    known = await connect_to(secure, listener)
    await known.log_in()
    net = secure.listeners.all[listener].net
    made = frames(dice)
    sent = 0
    while sent < FRAMES:
        stranger = await connect_to(secure, listener)
        for _ in range(20):
            stranger.writer.write(next(made))
            sent += 1
        stranger.writer.write_eof() if listener == "SASL_PLAINTEXT" else stranger.writer.close()
    await until(lambda: len(net.connections) == 1)
    assert (await known(METADATA, 4)).brokers


async def test_bytes_that_are_no_tls_are_closed(secure, connect_to, until):
    dice = random.Random(SEED)
    known = await connect_to(secure, "SSL")
    net = secure.listeners.all["SSL"].net
    for _ in range(60):
        _, writer = await asyncio.open_connection("127.0.0.1", net.port)
        start = dice.choice((b"", b"\x16\x03\x01\x00\x10", b"\x16\x03\x03", b"GET / HTTP/1.0\r\n"))
        writer.write(start + dice.randbytes(dice.randrange(300)))
        writer.write_eof()
    await until(lambda: len(net.connections) == 1)
    assert (await known(METADATA, 4)).brokers
