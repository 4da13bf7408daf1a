"""Frames: a message with its header and length, as it travels over a connection.

A request is length, header, body; so is a response. Request headers come in version 1 (key,
version, correlation id, client id) and, for flexible requests, 2 (with a tag section); response
headers in 0 (correlation id) and 1 (with a tag section). Header version 0 of requests belonged to
one API that Kafka 4 dropped.

What stands after a message in its frame is ignored, as Apache Kafka does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sized
from functools import cache
from typing import Any

from semel.wire.errors import ProtocolError
from semel.wire.messages import request_class, response_class
from semel.wire.primitives import Buffer, skip_tags
from semel.wire.schema import Message
from semel.wire.schema.compile_decode import compile_checker, compile_reader
from semel.wire.schema.compile_encode import compile_writer

_API_VERSIONS = 18

_request_start = struct.Struct(">hhih")  # key, version, correlation id, length of the client id
_frame_start = struct.Struct(">ihhih")
_response_start = struct.Struct(">ii")
_length = struct.Struct(">i")


class Frame(bytearray):
    """Bytes to send, beginning with four for the length, which `seal` fills in.

    `regions` are (position, region) pairs: the region's bytes belong before the byte at that
    position of the frame. They stay in their files until the connection sends them.
    """

    # The empty ones belong to the class: most frames need no list of their own.
    regions: list[tuple[int, Sized]] | tuple[()] = ()

    def add_region(self, region: Sized) -> None:
        """The next bytes of the frame are the region's."""
        if self.regions:
            self.regions.append((len(self), region))
        else:
            self.regions = [(len(self), region)]

    def pieces(self) -> list[Buffer]:
        """What to send one after another, where all regions are `Pieces`."""
        view, position = memoryview(self), 0
        pieces: list[Buffer] = []
        for at, region in self.regions:
            assert isinstance(region, Pieces)
            pieces += (view[position:at], *region.buffers)
            position = at
        pieces.append(view[position:])
        return [piece for piece in pieces if len(piece)]

    def seal(self) -> None:
        """Write the length: of everything after itself, regions included."""
        size = len(self) - 4
        if self.regions:
            size += sum(len(region) for _, region in self.regions)
        _length.pack_into(self, 0, size)


class Pieces:
    """Records in buffers of their own, sent without being copied into the frame: a region."""

    __slots__ = ("buffers", "size")

    def __init__(self, *buffers: Buffer) -> None:
        self.buffers = buffers
        self.size = sum(len(buffer) for buffer in buffers)

    def __len__(self) -> int:
        return self.size


class RequestHeader:
    """What stands before every request."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None = None
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestHeader):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"RequestHeader({values})"


def peek_request(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """The header of a request, and where the rest begins: in flexible requests its tag section.

    Says enough to answer a request that cannot be decoded, such as one of an unknown version.
    """
    try:
        key, version, correlation_id, size = _request_start.unpack_from(buffer, position)
        position += _request_start.size
        if size < 0:
            return RequestHeader(key, version, correlation_id), position
        end = position + size
        if end > len(buffer):
            raise ProtocolError("the bytes end within the client id")
        # Never compact, also in header version 2 (RequestHeader.json says why: an ApiVersions
        # request of any version must be readable by any broker).
        client_id = str(buffer[position:end], "utf-8")
    except (struct.error, ValueError) as error:
        raise ProtocolError(f"request header: {error}") from None
    return RequestHeader(key, version, correlation_id, client_id), end


def decode_request(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, Message]:
    """The request in a frame, given from after the length. Unknown APIs are ProtocolErrors."""
    header, position = peek_request(buffer, position)
    message_class, version = request_class(header.api_key), header.api_version
    if message_class.is_flexible(version):
        position = _after_tags(buffer, position)
    return header, message_class.decode(buffer, position, version)[0]


@cache
def request_reader(api_key: int, version: int) -> Callable[[bytearray, int], Message]:
    """`read(frame, position)` of one API and version, for who reads many requests of it: the body
    of a request, given from after its client id. Its twin is `decode_request`."""
    message_class = request_class(api_key)
    message_class.require(version)
    return compile_reader(message_class, version)


@cache
def request_checker(api_key: int, version: int) -> Callable[[bytearray, int, int], None]:
    """`check(frame, position, most)` of one API and version: refuses a request with too many
    elements (ProtocolError), for frames large enough to have them."""
    message_class = request_class(api_key)
    message_class.require(version)
    return compile_checker(message_class, version)


@cache
def response_writer(api_key: int, version: int) -> Callable[[Message, int], Frame]:
    """`write(message, correlation_id)`, for who writes many. Its twin is `encode_response`."""
    message_class = response_class(api_key)
    message_class.require(version)
    return compile_writer(message_class, version, Frame, _has_tags(message_class, version))


def encode_request(header: RequestHeader, message: Message) -> Frame:
    """A sealed frame with the header and the request."""
    key, version, name = header.api_key, header.api_version, header.client_id
    raw = b"" if name is None else name.encode()
    size = -1 if name is None else len(raw)
    frame = Frame(_frame_start.pack(0, key, version, header.correlation_id, size))
    frame += raw
    if version in message.FLEXIBLE:
        frame.append(0)
    message.encode(frame, version)
    frame.seal()
    return frame


def encode_response(correlation_id: int, message: Message, version: int) -> Frame:
    """A sealed frame with a response."""
    frame = Frame(_response_start.pack(0, correlation_id))
    if _has_tags(type(message), version):
        frame.append(0)
    message.encode(frame, version)
    frame.seal()
    return frame


def _has_tags(response: type[Message], version: int) -> bool:
    """Whether the response's header is the newer one. Never that of ApiVersions: a client asks it
    before it knows what the broker speaks."""
    return version in response.FLEXIBLE and response.API_KEY != _API_VERSIONS


def correlation_id_of(buffer: Buffer, position: int = 0) -> int:
    """Which request a response answers."""
    try:
        (correlation_id,) = _length.unpack_from(buffer, position)
    except struct.error as error:
        raise ProtocolError(f"response header: {error}") from None
    return int(correlation_id)


def decode_response(
    buffer: Buffer, api_key: int, version: int, position: int = 0
) -> tuple[int, Any]:
    """(correlation id, response) of a frame, given from after the length."""
    correlation_id = correlation_id_of(buffer, position)
    position += 4
    message_class = response_class(api_key)
    if _has_tags(message_class, version):
        position = _after_tags(buffer, position)
    message, _ = message_class.decode(buffer, position, version)
    return correlation_id, message


def _after_tags(buffer: Buffer, position: int) -> int:
    try:
        return skip_tags(buffer, position) if buffer[position] else position + 1
    except IndexError:
        raise ProtocolError("the bytes end within the header") from None
