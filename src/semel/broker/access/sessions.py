"""SASL of a listener: who may ask for what before they have said who they are, and what follows.

A connection begins with a host of its own (`net/unauthenticated`), where only ApiVersions,
SaslHandshake and SaslAuthenticate are answered. Its `SaslSession` remembers how far it has come
(SaslServerAuthenticator's states). A session that ends (KIP-368) goes back there, until the client
has authenticated anew.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from semel.broker.access.mechanisms import Mechanisms
from semel.core.access.principals import USER, KafkaPrincipal
from semel.core.access.sasl import Refused, ServerExchange
from semel.net.unauthenticated import UnauthenticatedHost
from semel.wire.errors import ErrorCode
from semel.wire.frames import Frame
from semel.wire.messages import APIS
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from semel.broker.settings.settings import ListenerSettings
    from semel.net.connection import Connection
    from semel.net.listener import Listener

log = logging.getLogger("semel.sasl")

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
#: Who authenticates anew sooner than this after the last time is refused (KafkaChannel).
SOONEST_AGAIN_MS = 1000
read_key = struct.Struct(">h").unpack_from

Receive = Callable[["Connection", bytearray], Any]


class SaslState(Enum):
    """What may come next."""

    HANDSHAKE = "a handshake, or ApiVersions"
    TOKENS = "the messages of the mechanism"
    RAW_TOKENS = "the same, each a frame by itself (version 0 of SaslHandshake)"
    COMPLETE = "everything"
    EXPIRED = "a handshake, and nothing else"
    FAILED = "nothing"


_ALLOWED = {
    SaslState.HANDSHAKE: (SASL_HANDSHAKE, API_VERSIONS),
    SaslState.TOKENS: (SASL_AUTHENTICATE,),
    SaslState.EXPIRED: (SASL_HANDSHAKE,),
    SaslState.FAILED: (),
    SaslState.COMPLETE: (),
    SaslState.RAW_TOKENS: (),
}


class SaslGate:
    """The SASL of one listener."""

    def __init__(
        self,
        listener: Listener,
        settings: ListenerSettings,
        mechanisms: Mechanisms,
        receive: Receive,
        now_ms: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.mechanisms = mechanisms
        self.now_ms = now_ms
        #: How authentications ended, by mechanism: for the metrics.
        self.counts: Counter[tuple[str, str]] = Counter()
        self._receive = receive
        self.unauthenticated = UnauthenticatedHost(
            listener, self._receive_first, settings["sasl.server.max.receive.size"]
        )
        listener.first_host = self.unauthenticated

    def _receive_first(self, connection: Connection, frame: bytearray) -> Any:
        """A request of somebody unknown."""
        session: SaslSession | None = connection.session
        if session is None:
            session = connection.session = SaslSession(self, connection)
        if session.state is SaslState.RAW_TOKENS:
            session.raw_token(bytes(frame))
            return None
        key = read_key(frame)[0] if len(frame) >= 2 else -1
        if key not in _ALLOWED[session.state]:
            name = APIS.get(key, (f"API {key}",))[0]
            connection.close(f"{name} where SASL expects {session.state.value}")
            return None
        return self._receive(connection, frame)


class SaslSession:
    """One connection's way through SASL, from the handshake on, perhaps several times."""

    def __init__(self, gate: SaslGate, connection: Connection) -> None:
        self._gate = gate
        self._connection = connection
        self.state = SaslState.HANDSHAKE
        self.principal: KafkaPrincipal | None = None  # since it was complete for the first time
        self._mechanism = ""
        self._asked = ""  # the mechanism that the last handshake named
        self._exchange: ServerExchange | None = None
        self._authenticated_ms = 0
        self._expiry: asyncio.TimerHandle | None = None

    # What the client asks

    def handshake(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse | Any:
        if self.state is SaslState.COMPLETE and not self._may_begin_again():
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
        enabled = list(self._gate.mechanisms.enabled)
        if request.mechanism not in enabled:
            return self._refuse(
                SaslHandshakeResponse(
                    error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled
                ),
                f"unsupported mechanism {request.mechanism[:40]!r}",
            )
        self._asked = request.mechanism
        self._exchange = self._gate.mechanisms.begin(request.mechanism)
        self.state = SaslState.TOKENS if version >= 1 else SaslState.RAW_TOKENS
        self._connection.move_to(self._gate.unauthenticated)
        return SaslHandshakeResponse(mechanisms=enabled)

    async def authenticate(
        self, request: SaslAuthenticateRequest, version: int
    ) -> SaslAuthenticateResponse:
        if self.state is not SaslState.TOKENS:
            return SaslAuthenticateResponse(
                error_code=ErrorCode.ILLEGAL_SASL_STATE,
                error_message="SaslAuthenticate request received after successful authentication",
            )
        try:
            answer = await self._answer(bytes(request.auth_bytes))
        except Refused as refused:
            message = refused.told or (
                f"Authentication failed during {self._what} due to invalid credentials with SASL "
                f"mechanism {self._asked}"
            )
            failed = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message
            )
            await self._refuse(failed, message)
            return failed
        lifetime_ms = self._complete() if self._is_proved else 0
        return SaslAuthenticateResponse(
            error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime_ms
        )

    def raw_token(self, token: bytes) -> None:
        """As clients did it before there was SaslAuthenticate: tokens without any request."""
        slot = self._connection.reserve(exclusive=True)

        async def answer() -> None:
            try:
                slot.fill(_raw(await self._answer(token)))
            except Refused as refused:
                await self._refuse(None, str(refused))
                slot.fill(None)
                return
            if self._is_proved:
                self._complete()

        self._gate.mechanisms.spawn(answer())

    async def _answer(self, token: bytes) -> bytes:
        exchange = self._exchange
        assert exchange is not None
        if self.principal is not None and self._asked != self._mechanism:
            raise Refused(
                f"SASL mechanism '{self._asked}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._mechanism}'"
            )
        await self._gate.mechanisms.prepare(self._asked, token)
        answer = exchange.answer(token)
        if exchange.user is not None:
            self._check_unchanged(KafkaPrincipal(USER, exchange.user))
        return answer

    def _check_unchanged(self, principal: KafkaPrincipal) -> None:
        known = self.principal
        if known is not None and known != principal:
            raise Refused(
                f"Cannot change principals during re-authentication from {known.type}."
                f"{known.name}: {principal.type}.{principal.name}"
            )

    # What follows

    @property
    def _is_proved(self) -> bool:
        return self._exchange is not None and self._exchange.user is not None

    @property
    def _what(self) -> str:
        return "authentication" if self.principal is None else "re-authentication"

    def _complete(self) -> int:
        """The client is let in; for how many milliseconds, or 0 for as long as it likes."""
        exchange, connection = self._exchange, self._connection
        assert exchange is not None
        assert exchange.user is not None
        self._exchange = None
        self._mechanism = self._asked
        self.principal = connection.principal = KafkaPrincipal(USER, exchange.user)
        self.state = SaslState.COMPLETE
        self._authenticated_ms = self._gate.now_ms()
        self._gate.counts[self._mechanism, "success"] += 1
        connection.state = None  # what was known of the client was known of a stranger
        self._gate.unauthenticated.let_in(connection)
        return self._limit(exchange.expires_at_ms)

    def _limit(self, expires_at_ms: int | None) -> int:
        """SaslServerAuthenticator.calcCompletionTimesAndReturnSessionLifetimeMs."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        settings = self._gate.settings.of_mechanism(self._mechanism)
        limits = [settings["connections.max.reauth.ms"] or None]
        if expires_at_ms is not None:
            limits.append(max(0, expires_at_ms - self._authenticated_ms))
        known = [limit for limit in limits if limit is not None]
        if not known:
            return 0
        lifetime_ms: int = min(known)
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(lifetime_ms / 1000, self._expire)
        self._connection.waits.add(self)
        return lifetime_ms

    def _expire(self) -> None:
        if self.state is SaslState.COMPLETE and not self._connection.closed:
            self.state = SaslState.EXPIRED
            self._connection.move_to(self._gate.unauthenticated)

    def abandon(self) -> None:
        """The connection has ended."""
        if self._expiry is not None:
            self._expiry.cancel()

    def _may_begin_again(self) -> bool:
        waited_ms = self._gate.now_ms() - self._authenticated_ms
        return self._expiry is not None and waited_ms >= SOONEST_AGAIN_MS

    async def _refuse(self, response: Any, why: str) -> Any:
        """Hold the answer back for a while, then close behind it."""
        self.state = SaslState.FAILED
        self._exchange = None
        self._connection.move_to(self._gate.unauthenticated)
        self._gate.counts[self._asked or "unknown", "failure"] += 1
        log.warning(
            "authentication failed",
            extra={
                "peer": f"{self._connection.peer_host}:{self._connection.peer_port}",
                "listener": self._connection.listener,
                "reason": why,
            },
        )
        delay_ms = self._gate.settings["connection.failed.authentication.delay.ms"]
        await asyncio.sleep(delay_ms / 1000)
        self._connection.drain()
        return response


def _raw(token: bytes) -> Frame:
    frame = Frame(bytes(4))
    frame += token
    frame.seal()
    return frame
