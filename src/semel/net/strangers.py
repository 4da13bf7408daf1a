"""Who answers in a broker's place: told by their first bytes, or found out by asking differently.

A wrong port is a common mistake: an HTTP server, a TLS listener that is spoken to in the clear, or
the reverse. Some answer, and some hang up without a word.
"""

import asyncio
import ssl
from contextlib import suppress

from semel.wire.messages.api_versions import ApiVersionsRequest

PATIENCE_S = 1.0
_HTTP = "it speaks HTTP"
_TLS = "it speaks TLS: set security_protocol to SSL or SASL_SSL"
_CLEAR = "it speaks Kafka's protocol without TLS: set security_protocol to PLAINTEXT"
_LARGEST_FIRST = 1 << 20
# One tagged field, of a number that Kafka will hardly use, and its four bytes.
_LINE_ENDS = b"\x01" + b"\x8f\x4e" + b"\x04" + b"\r\n\r\n"
_READ = 16
# ApiVersions, version 0, correlation id 7, no client id: any broker of any age answers it.
_ARE_YOU_A_BROKER = bytes.fromhex("0000000a 0012 0000 00000007 ffff")
_CORRELATION_ID = bytes.fromhex("00000007")


class Greeting:
    """The first request, with the end of a line in a tagged field, which brokers skip (KIP-482).

    HTTP servers that wait for the end of a line thus say at once that they are no brokers.
    """

    API_KEY, FLEXIBLE = ApiVersionsRequest.API_KEY, ApiVersionsRequest.FLEXIBLE

    def __init__(self, software: str, version: str) -> None:
        self._plain = ApiVersionsRequest(
            client_software_name=software, client_software_version=version
        )

    def encode(self, out: bytearray, version: int) -> None:
        self._plain.encode(out, version)
        if version in self.FLEXIBLE:
            assert out[-1] == 0, "no tagged fields of its own"
            out[-1:] = _LINE_ENDS


def told_by(first: bytes) -> str | None:
    """What the first bytes of an answer say, if no broker answers so."""
    if first.startswith((b"HTTP", b"<")):
        return _HTTP
    if first[:2] == b"\x15\x03":  # an alert, of TLS
        return _TLS
    if len(first) >= 4 and 4 <= int.from_bytes(first[:4], "big") <= _LARGEST_FIRST:
        return None
    if len(first) >= 4 and first[:4].isascii() and first[:4].decode().isprintable():
        line = first[:40].splitlines()[0].decode(errors="replace")
        return f"it says {line!r}"
    return "it speaks another protocol"


async def identify(host: str, port: int, *, over_tls: bool) -> str | None:
    """Who listens there, if it is told within a moment. Asked of nobody who has answered."""
    asked = [_answers_http(host, port)]
    asked.append(_answers_in_the_clear(host, port) if over_tls else _answers_tls(host, port))
    for found in await asyncio.gather(*asked):
        if found is not None:
            return found
    return None


async def _answers_http(host: str, port: int) -> str | None:
    first = await _first_bytes(host, port, b"GET / HTTP/1.0\r\n\r\n")
    return _HTTP if first.startswith(b"HTTP/") else None


async def _answers_in_the_clear(host: str, port: int) -> str | None:
    first = await _first_bytes(host, port, _ARE_YOU_A_BROKER)
    return _CLEAR if first[4:8] == _CORRELATION_ID else None


async def _answers_tls(host: str, port: int) -> str | None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # nothing is told to whoever it is
    context.verify_mode = ssl.CERT_NONE
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
            writer.transport.abort()
            return _TLS
    return None


async def _first_bytes(host: str, port: int, said: bytes) -> bytes:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(said)
                return await reader.read(_READ)
            finally:
                writer.transport.abort()
    return b""
