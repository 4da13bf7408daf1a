"""A client's view of the cluster: connections to brokers, metadata, asking with patience."""

import asyncio
import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from semel.client.errors import error_for
from semel.client.machines.metadata import ClusterMetadata
from semel.client.machines.patience import Deadline
from semel.client.machines.types import Node
from semel.client.settings import ClientSettings
from semel.errors import FatalError, UnreachableError
from semel.net.client_connection import (
    AuthenticationFailed,
    ClientConnection,
    ConnectionLost,
    Endpoint,
    NotABroker,
    VersionMismatch,
)
from semel.net.client_opening import open_connection
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.schema import Message

# Kafka answers a connection's requests in order, so requests that wait at the broker (long polls,
# joins) get a connection of their own: one per (endpoint, purpose).
GENERAL, FETCH, GROUP = "general", "fetch", "group"

_Key = tuple[Endpoint, str]


class Cluster:
    def __init__(self, settings: ClientSettings, *, creates_topics: bool = True) -> None:
        self.settings = settings
        self.creates_topics = creates_topics  # those asked for, where the broker allows it
        self.backoff = settings.backoff()
        self.metadata = ClusterMetadata(settings.metadata_max_age_ms)
        self.wanted_topics: set[str] = set()
        self.wanted_ids: set[UUID] = set()  # topics that are known by their ids alone
        self.wants_all_topics = False
        self._security = settings.security()
        self._bootstrap = settings.endpoints()
        self._connections: dict[_Key, ClientConnection] = {}
        self._opening: dict[_Key, asyncio.Task[ClientConnection]] = {}
        self._failures: dict[Endpoint, tuple[int, float]] = {}  # count, not before
        self._problems: dict[Endpoint, str] = {}  # why the last attempt failed
        self._refreshing: asyncio.Task[None] | None = None
        self.failed_connections = 0  # attempts, since the beginning
        self._closed = False
        self._loop = asyncio.get_running_loop()

    def now_ms(self) -> float:
        return self._loop.time() * 1000

    def deadline(self, timeout_ms: float | None = None) -> Deadline:
        allowed = self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        return Deadline.after(self.now_ms(), allowed)

    async def close(self) -> None:
        self._closed = True
        tasks = [task for task in (*self._opening.values(), self._refreshing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # Connections

    def cut_connections(self) -> None:
        """Breaks every open connection, as a line may: what is in flight stays without an answer,
        and the next request opens another. For audits, which do this on purpose."""
        for connection in list(self._connections.values()):
            connection.close("cut on purpose")

    @property
    def open_connections(self) -> int:
        return sum(connection.usable for connection in self._connections.values())

    def ready_connection(self, node: Node, purpose: str = GENERAL) -> ClientConnection | None:
        """The open connection to a broker, if there is one; never waits."""
        connection = self._connections.get((Endpoint(node.host, node.port), purpose))
        return connection if connection is not None and connection.usable else None

    async def connection(self, node: Node, purpose: str = GENERAL) -> ClientConnection:
        return await self._connect(Endpoint(node.host, node.port), purpose)

    async def _connect(self, endpoint: Endpoint, purpose: str) -> ClientConnection:
        key = endpoint, purpose
        open_already = self._connections.get(key)
        if open_already is not None and open_already.usable:
            return open_already
        task = self._opening.get(key)
        if (
            task is None or task.done()
        ):  # one that failed may still be there: its callback runs later
            task = self._opening[key] = self._loop.create_task(self._open(key))
            task.add_done_callback(partial(self._opened, key))
        return await asyncio.shield(task)

    def _opened(self, key: _Key, task: asyncio.Task[ClientConnection]) -> None:
        if self._opening.get(key) is task:
            del self._opening[key]
        if not task.cancelled():
            task.exception()  # whoever waits has it

    async def _open(self, key: _Key) -> ClientConnection:
        endpoint, _ = key
        failures, not_before = self._failures.get(endpoint, (0, 0.0))
        await asyncio.sleep(max(0.0, not_before - self.now_ms()) / 1000)
        try:
            connection = await open_connection(
                endpoint,
                client_id=self.settings.client_id,
                security=self._security,
                timeout_s=self.settings.socket_connection_setup_timeout_ms / 1000,
            )
        except ConnectionLost as lost:
            self._problems[endpoint] = str(lost)
            self.failed_connections += 1
            delay = self.backoff.delay_ms(failures + 1, random.random())
            self._failures[endpoint] = failures + 1, self.now_ms() + delay
            raise
        self._failures.pop(endpoint, None)
        self._problems.pop(endpoint, None)
        stale = self._connections.get(key)
        self._connections[key] = connection
        if stale is not None and not stale.in_flight:
            stale.close()
        return connection

    async def any_connection(self, deadline: Deadline) -> ClientConnection:
        """A connection to any broker: an open one, else a new one, until the deadline."""
        for (_, purpose), connection in self._connections.items():
            if purpose == GENERAL and connection.usable:
                return connection
        while True:
            known = [Endpoint(node.host, node.port) for node in self.metadata.nodes.values()]
            candidates = list(dict.fromkeys((*known, *self._bootstrap)))
            random.shuffle(candidates)
            problems: list[str] = []
            strangers = 0
            for endpoint in candidates:
                try:
                    async with asyncio.timeout(deadline.remaining_ms(self.now_ms()) / 1000):
                        return await self._connect(endpoint, GENERAL)
                except ConnectionLost as lost:
                    problems.append(str(lost))
                    strangers += isinstance(lost, NotABroker)
                except TimeoutError:
                    problems.append(f"{endpoint}: no answer in time")
            if strangers == len(candidates):
                raise FatalError("; ".join(problems))
            if deadline.has_passed(self.now_ms()):
                raise UnreachableError(f"no broker can be reached: {'; '.join(problems)}")

    # Asking

    async def ask(
        self,
        message: Message | Callable[[int], Message],
        *,
        of: type[Message] | None = None,
        node: Node | None = None,
        deadline: Deadline | None = None,
        purpose: str = GENERAL,
        at_most: int = 0x7FFF,
        wait_ms: float = 0,
    ) -> Any:
        """One request and its answer; a lost connection is tried again until the deadline.

        `message` is a request, or a function of the version agreed on with the broker, of the
        class `of`. `wait_ms` is how long the broker itself may take on top. For requests that do
        no harm when they arrive twice.
        """
        deadline = deadline or self.deadline()
        kind: type[Message] = of or type(message)  # type: ignore[assignment]
        attempt = 0
        while True:
            try:
                connection = await self._connection_for(node, purpose, deadline)
                version = connection.version_for(kind, at_most)
                request = message if isinstance(message, Message) else message(version)
                remaining = deadline.remaining_ms(self.now_ms())
                timeout = min(self.settings.request_timeout_ms + wait_ms, max(remaining, 1.0))
                return await connection.request(request, timeout / 1000, version)
            except ConnectionLost as lost:
                attempt += 1
                delay = self.backoff.delay_ms(attempt, random.random())
                if delay >= deadline.remaining_ms(self.now_ms()):
                    raise UnreachableError(f"{kind.__name__} was not answered: {lost}") from None
                await asyncio.sleep(delay / 1000)
            except VersionMismatch as error:
                raise FatalError(str(error), ErrorCode.UNSUPPORTED_VERSION) from None
            except (AuthenticationFailed, ProtocolError) as error:
                raise FatalError(str(error)) from None

    async def _connection_for(
        self, node: Node | None, purpose: str, deadline: Deadline
    ) -> ClientConnection:
        if node is None:
            return await self.any_connection(deadline)
        try:
            async with asyncio.timeout(deadline.remaining_ms(self.now_ms()) / 1000):
                return await self.connection(node, purpose)
        except TimeoutError:
            raise ConnectionLost(f"{node.host}:{node.port}: no connection in time") from None

    async def find_coordinator(self, kind: int, key: str, deadline: Deadline) -> Node:
        """The coordinator of a group (0) or transactional id (1)."""

        def request(version: int) -> Message:
            if version >= 4:
                return FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            return FindCoordinatorRequest(key_type=kind, key=key)

        attempt = 0
        while True:
            answer = await self.ask(request, of=FindCoordinatorRequest, deadline=deadline)
            found = answer.coordinators[0] if answer.coordinators else answer
            code = ErrorCode.of(found.error_code)
            if code is ErrorCode.NONE:
                return Node(found.node_id, found.host, found.port)
            attempt += 1
            if not await self.may_try_again(code, attempt, deadline):
                raise error_for(code, f"no coordinator for {key!r}", why=found.error_message)

    async def may_try_again(self, code: ErrorCode, attempt: int, deadline: Deadline) -> bool:
        """Waits before another attempt; False if the code or the deadline allows none."""
        return code.retriable and await self.wait_to_retry(attempt, deadline)

    async def wait_to_retry(self, attempt: int, deadline: Deadline) -> bool:
        delay = self.backoff.delay_ms(attempt, random.random())
        if delay >= deadline.remaining_ms(self.now_ms()):
            return False
        await asyncio.sleep(delay / 1000)
        return True

    # Metadata

    async def refresh(self, deadline: Deadline | None = None) -> None:
        """Brings the metadata of the wanted topics up to date. Callers share one request."""
        if self._refreshing is None:
            self._refreshing = self._loop.create_task(self._refresh())
            self._refreshing.add_done_callback(self._refreshed)
        deadline = deadline or self.deadline()
        try:
            async with asyncio.timeout(deadline.remaining_ms(self.now_ms()) / 1000):
                await asyncio.shield(self._refreshing)
        except TimeoutError:
            why = "; ".join(self._problems.values()) or "the metadata did not arrive in time"
            raise UnreachableError(f"no broker can be reached: {why}") from None

    async def _refresh(self) -> None:
        everything = self.wants_all_topics
        wanted = [
            *(MetadataRequest.MetadataRequestTopic(name=n) for n in sorted(self.wanted_topics)),
            *(MetadataRequest.MetadataRequestTopic(topic_id=i, name=None) for i in self.wanted_ids),
        ]
        request = MetadataRequest(
            topics=None if everything else wanted, allow_auto_topic_creation=self.creates_topics
        )
        answer = await self.ask(request)
        self.metadata.update(answer, self.now_ms(), complete=everything)
        self.wanted_ids -= self.metadata.names.keys()

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # whoever waits has it; nobody waiting is no reason for a warning

    async def topic(self, name: str, deadline: Deadline) -> int:
        """How many partitions a topic has; waits for a new topic, until the deadline."""
        self.wanted_topics.add(name)
        attempt = 0
        while True:
            if self.metadata.needs_refresh(self.now_ms(), (name,)):
                await self.refresh(deadline)
            count = self.metadata.partition_count(name)
            if count:
                return count
            code = self.metadata.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            attempt += 1
            if not await self.may_try_again(code, attempt, deadline):
                self.wanted_topics.discard(name)
                raise error_for(code, f"topic {name!r}")
            self.metadata.expire()

    async def check_topics(self, names: Iterable[str], deadline: Deadline) -> None:
        for name in names:
            await self.topic(name, deadline)
