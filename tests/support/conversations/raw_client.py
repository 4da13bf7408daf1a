"""One blocking connection that says exactly what it is told to: no retries, no negotiation.

For tests that compare brokers answer by answer, and for benchmarks in which the client must not be
the limit.
"""

import socket
import struct
from types import TracebackType
from typing import Any

from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.schema import Message

_LENGTH = struct.Struct(">i")


class RawClient:
    def __init__(self, bootstrap: str, client_id: str = "raw", timeout_s: float = 30) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and wait for its answer."""
        self.tell(request, version)
        return self.hear(request.API_KEY, version)

    def tell(self, request: Message, version: int) -> None:
        """Send a request without waiting: `hear` its answer later, in order."""
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        self._socket.sendall(encode_request(header, request))

    def hear(self, api_key: int, version: int) -> Any:
        (size,) = _LENGTH.unpack(self._read(4))
        _, response = decode_response(self._read(size), api_key, version)
        return response

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionError("the broker closed the connection")
        return data
