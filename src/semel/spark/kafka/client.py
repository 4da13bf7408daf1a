"""A small blocking client of the wire: connections, leaders and coordinators, for a driver and its
tasks.

It holds no background threads, so that it can live in a Spark task, and it reads and writes
records as opaque bytes.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TypeVar

from semel import __version__
from semel.client.errors import error_for
from semel.errors import FatalError, RefusedError, RetriableError, SemelError, UnreachableError
from semel.net.client_sasl import Credentials
from semel.net.strangers import Greeting, told_by
from semel.spark.kafka.settings import SparkSettings
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.frames import Frame, RequestHeader, decode_response, encode_request
from semel.wire.messages.api_versions import ApiVersionsRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest
from semel.wire.schema import Message

_SOFTWARE = "semel-spark"
GROUP, TRANSACTION = 0, 1
EARLIEST, LATEST = -2, -1  # timestamps of ListOffsets
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_PAUSE_S = 0.02
_METADATA_S = 60.0
_PIECES = 512  # what one sendmsg takes; the limit of Linux is 1,024

# Versions above these name topics by id only, or ask for many keys at once: nothing gained here.
_HIGHEST = {0: 12, 1: 12, 3: 12, 10: 3, 18: 3, 22: 5, 24: 3}

T = TypeVar("T")


class NotABrokerError(ProtocolError):
    """Somebody else listens there."""


class BlockingConnection:
    """One socket, one request at a time."""

    def __init__(self, host: str, port: int, settings: SparkSettings) -> None:
        self._client_id = settings.client_id
        plain = _open(host, port, settings)
        tls = settings.tls()
        self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname=host)
        self._tls = tls is not None
        self._ids = count()
        self._lock = threading.Lock()
        self.closed = False
        self._versions: dict[int, tuple[int, int]] = {18: (0, 3)}
        self._is_known = False
        credentials = settings.credentials()
        if credentials is not None:
            self._authenticate(credentials)
        greeting: Any = Greeting(_SOFTWARE, __version__)
        answer = self.call_version(greeting, self.version(ApiVersionsRequest))
        check(answer.error_code, "asking for the broker's versions")
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys
        }
        self.features = {entry.name: entry.max_version_level for entry in answer.finalized_features}
        self._is_known = True

    def version(self, message: type[Message], highest: int | None = None) -> int:
        """The highest version that both sides speak."""
        key = message.API_KEY
        if key not in self._versions:
            raise RefusedError(f"the broker does not know {message.__name__}: it is too old")
        lowest, theirs = self._versions[key]
        ours = min(message.VERSIONS[-1], _HIGHEST.get(key, 99), 99 if highest is None else highest)
        if ours < lowest:
            raise RefusedError(
                f"the broker speaks {message.__name__} from version {lowest} on, this client up to"
                f" {ours}: one of the two is too old"
            )
        return min(ours, theirs)

    def speaks(self, message: type[Message]) -> bool:
        return message.API_KEY in self._versions

    def call(self, message: Message, highest: int | None = None) -> Any:
        version = self.version(type(message), highest)
        try:
            return self.call_version(message, version)
        except ProtocolError as error:
            name = type(message).__name__
            raise FatalError(f"the broker's answer to {name} cannot be read: {error}") from error

    def call_version(self, message: Message, version: int) -> Any:
        with self._lock:
            if self.closed:
                raise ConnectionError("connection closed")
            try:
                header = RequestHeader(
                    message.API_KEY, version, next(self._ids) & 0x7FFFFFFF, self._client_id
                )
                self._send(encode_request(header, message))
                correlation, answer = decode_response(self._receive(), message.API_KEY, version)
            except BaseException:
                # An answer that was not read would be taken for the next request's.
                self.close()
                raise
        if correlation != header.correlation_id:
            self.close()
            raise ProtocolError("an answer to another request")
        return answer

    def close(self) -> None:
        self.closed = True
        self._socket.close()

    def _send(self, frame: Frame) -> None:
        if not frame.regions:
            self._socket.sendall(frame)
            return
        self._send_pieces(frame.pieces())

    def _send_pieces(self, pieces: list[Any]) -> None:
        if self._tls:
            for piece in pieces:
                self._socket.sendall(piece)
            return
        while pieces:
            sent = self._socket.sendmsg(pieces[:_PIECES])
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            if sent:
                pieces[0] = memoryview(pieces[0])[sent:]

    def _receive(self) -> memoryview:
        length = self._read(4)
        if not self._is_known and (stranger := told_by(bytes(length))) is not None:
            raise NotABrokerError(f"it is not a Kafka broker: {stranger}")
        size = int.from_bytes(length, "big")
        if size < 4:
            raise ProtocolError(f"an answer of {size} bytes")
        return self._read(size)

    def _read(self, size: int) -> memoryview:
        buffer = bytearray(size)
        view, filled = memoryview(buffer), 0
        while filled < size:
            got = self._socket.recv_into(view[filled:])
            if got == 0:
                raise ConnectionError("the broker closed the connection")
            filled += got
        return view

    def _authenticate(self, credentials: Credentials) -> None:
        mechanism = credentials.mechanism
        handshake = self.call_version(SaslHandshakeRequest(mechanism=mechanism), 1)
        check(handshake.error_code, f"SASL handshake, offering {mechanism}")
        exchange = credentials.exchange()
        message: bytes | None = exchange.first()
        while message is not None:
            answer = self.call_version(SaslAuthenticateRequest(auth_bytes=message), 1)
            check(answer.error_code, f"SASL authentication of {credentials.username!r}")
            message = exchange.next(bytes(answer.auth_bytes))


def _open(host: str, port: int, settings: SparkSettings) -> socket.socket:
    opened = socket.create_connection(
        (host, port), timeout=settings.socket_connection_setup_timeout_ms / 1000
    )
    opened.settimeout(settings.request_timeout_ms / 1000)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


class BlockingCluster:
    """Connections by what they are for: any broker, a partition's leader, a coordinator."""

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        self._bootstrap = [(each.host, each.port) for each in settings.endpoints()]
        self._nodes: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], BlockingConnection] = {}
        self._leaders: dict[str, dict[int, int]] = {}
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}

    def any(self) -> BlockingConnection:
        """A connection to some broker."""
        failures: list[str] = []
        strangers = True
        for address in [*self._connections, *self._nodes.values(), *self._bootstrap]:
            try:
                return self._connect(address)
            except (OSError, ProtocolError) as error:
                failures.append(f"{address[0]}:{address[1]}: {error}")
                strangers = strangers and isinstance(error, NotABrokerError)
        if strangers:
            raise FatalError(f"{'; '.join(dict.fromkeys(failures))}. Check host, port and settings")
        raise ConnectionError("no broker answers: " + "; ".join(dict.fromkeys(failures)))

    def partitions(self, topic: str) -> int:
        if topic not in self._leaders:
            self.refresh([topic])
        return len(self._leaders[topic])

    def leader_id(self, topic: str, partition: int) -> int:
        if topic not in self._leaders:
            self.refresh([topic])
        return self._leaders[topic].get(partition, -1)

    def node_ids(self) -> list[int]:
        return sorted(self._nodes)

    def node(self, node_id: int) -> BlockingConnection:
        address = self._nodes.get(node_id)
        if address is None:
            raise ConnectionError(f"broker {node_id} is not known")
        return self._connect(address)

    def leader(self, topic: str, partition: int) -> BlockingConnection:
        return self.node(self.leader_id(topic, partition))

    def coordinator(self, kind: int, key: str) -> BlockingConnection:
        if (kind, key) not in self._coordinators:
            answer = self.any().call(FindCoordinatorRequest(key=key, key_type=kind))
            check(answer.error_code, f"finding the coordinator of {key!r}")
            self._coordinators[kind, key] = (answer.host, answer.port)
        return self._connect(self._coordinators[kind, key])

    def forget_coordinator(self, kind: int, key: str) -> None:
        self._coordinators.pop((kind, key), None)

    def forget_leaders(self) -> None:
        self._leaders.clear()

    def refresh(self, topics: Iterable[str] | None, create: bool = False) -> None:
        """Ask for the leaders again; None means every topic, `create` that missing ones be made."""
        names = None if topics is None else [
            MetadataRequest.MetadataRequestTopic(name=name) for name in topics
        ]  # fmt: skip
        request = MetadataRequest(topics=names, allow_auto_topic_creation=create)
        # A connection kept from before may turn out to be dead only now.
        answer = patiently(lambda: self.any().call(request), "asking for metadata", _METADATA_S)
        self._nodes = {node.node_id: (node.host, node.port) for node in answer.brokers}
        for topic in answer.topics:
            check(topic.error_code, f"topic {topic.name!r}")
            self._leaders[topic.name] = {
                entry.partition_index: entry.leader_id for entry in topic.partitions
            }

    def topics(self) -> list[str]:
        self.refresh(None)
        return sorted(self._leaders)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _connect(self, address: tuple[str, int]) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is None or connection.closed:
            connection = BlockingConnection(*address, self.settings)
            self._connections[address] = connection
        return connection


def patiently(
    action: Callable[[], T],
    doing: str,
    timeout_s: float,
    on_retry: Callable[[], None] = lambda: None,
) -> T:
    """Repeat while the broker says "later" or cannot be reached, until the time is up."""
    deadline = time.monotonic() + timeout_s
    pause_s = _PAUSE_S
    while True:
        try:
            return action()
        except UnreachableError:
            raise  # somebody was patient already
        except (RetriableError, OSError) as error:
            reason = error
        if time.monotonic() > deadline:
            raise UnreachableError(f"{doing}: gave up after {timeout_s:g} s: {reason}") from reason
        on_retry()
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.5)


def check(code: int, doing: str) -> None:
    """Raises what a broker's error means: its `code` says that it is one."""
    if code:
        raise error_for(code, doing)


def is_an_answer(error: SemelError) -> bool:
    """Whether a broker said it, in contrast to our own refusals and to silence."""
    return error.code is not ErrorCode.NONE
