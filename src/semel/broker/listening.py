"""The broker's listeners: their names, protocols and limits, and what each tells clients."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from semel.broker.access.mechanisms import Mechanisms
from semel.broker.access.sessions import SaslGate
from semel.broker.addresses import (
    Address,
    NamedAddress,
    check_ports,
    parse_advertised,
    parse_listeners,
    parse_protocols,
)
from semel.broker.start_failures import listening_on
from semel.core.access.principals import ANONYMOUS
from semel.net.listener import Listener, ListenerLimits
from semel.net.memory import RequestMemory

if TYPE_CHECKING:
    from semel.broker.access.tls import ListenerTls
    from semel.broker.dispatch import Dispatcher
    from semel.broker.server import Broker
    from semel.broker.settings.settings import Settings
    from semel.net.connection import Connection

log = logging.getLogger("semel.broker")


class BrokerListener:
    """One of them."""

    def __init__(
        self, broker: Broker, dispatcher: Dispatcher, place: NamedAddress, memory: RequestMemory
    ) -> None:
        self._broker = broker
        self.place = place
        self.settings = broker.settings.of_listener(place.name)
        self.net = Listener(
            dispatcher.receive,
            ListenerLimits(),
            dispatcher.finish,
            dispatcher.receive_large,
            name=place.name,
            memory=memory,
            principal=ANONYMOUS,
        )
        self.tls: ListenerTls | None = None
        self.sasl: SaslGate | None = None
        if place.has_sasl:
            mechanisms = Mechanisms(
                self.settings, broker.catalog.credentials, broker.spawn, broker.now_ms
            )
            self.sasl = SaslGate(
                self.net, self.settings, mechanisms, dispatcher.receive, broker.now_ms
            )

    @property
    def address(self) -> Address:
        """Where it listens, with the port that it got."""
        return Address(self.place.address.host, self.net.port)

    @property
    def asks_who(self) -> bool:
        """Whether nobody comes in without having shown who they are."""
        return self.place.has_sasl or (
            self.place.has_tls and self.settings["ssl.client.auth"] == "required"
        )

    async def start(self) -> None:
        self.load(asyncio.get_running_loop())
        with listening_on(self.place.address):
            await self.net.start(*self.place.address)
        if not self.place.address.is_loopback and not self.asks_who:
            log.warning(
                "listening beyond this machine without authentication: whoever reaches it may "
                "read and write",
                extra={"listener": self.place.name, "address": self.address},
            )

    def load(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read keys, certificates and users."""
        if self.place.has_tls:
            from semel.broker.access.tls import ListenerTls
            from semel.net.tls import tls_connections

            self.tls = ListenerTls(self.place.name, self.settings, self.place.has_sasl, loop.time)
            self.tls.load()
            self.net.connect = tls_connections(self.tls, loop)
        if self.sasl is not None:
            self.sasl.mechanisms.load()
        if self.place.has_tls or self.place.has_sasl:
            limit_ms = self._broker.settings["connection.authentication.timeout.ms"]
            self.net.admission_seconds = limit_ms / 1000

    def reload(self) -> None:
        """Settings have changed."""
        if self.tls is not None:
            self.tls.reload()
        if self.sasl is not None:
            self.sasl.mechanisms.load()

    def check(self, settings: Settings) -> None:
        """Whether it could go on with these settings; raises BadSetting."""
        own = settings.of_listener(self.place.name)
        if self.tls is not None:
            from semel.broker.access.tls import context_of

            context_of(own, self.place.has_sasl)
        if self.sasl is not None:
            broker = self._broker
            Mechanisms(own, broker.catalog.credentials, broker.spawn, broker.now_ms).load()


class BrokerListeners:
    def __init__(self, broker: Broker, dispatcher: Dispatcher) -> None:
        self._broker = broker
        settings = broker.settings
        text = settings["listeners"]
        protocols = parse_protocols(settings["listener.security.protocol.map"])
        places = parse_listeners("listeners", text, protocols)
        check_ports("listeners", text, places)
        told = settings["advertised.listeners"]
        self._advertised = parse_advertised("advertised.listeners", told, places) if told else {}
        self.memory = RequestMemory()
        self.all = {
            place.name: BrokerListener(broker, dispatcher, place, self.memory) for place in places
        }
        self.first = self.all[places[0].name]
        for listener in self.all.values():
            listener.net.per_address = self.first.net.per_address
        self._loaded: object = None

    def load(self) -> None:
        """See that what was given at the start suffices, before anything is touched."""
        for listener in self.all.values():
            listener.load(self._broker.loop)

    async def start(self) -> None:
        self._loaded = self._security()
        self.set_limits()
        self._broker.settings.observers.append(self._settings_changed)
        for listener in self.all.values():
            await listener.start()

    async def stop(self) -> None:
        started = [listener.net.stop() for listener in self.all.values() if listener.net.port]
        await asyncio.gather(*started)

    # What clients are told

    def advertised(self, connection: Connection) -> Address:
        """The address to tell this client: as set for the listener it came by, or, listening
        everywhere, the one it came to."""
        return self.advertised_by(connection.listener, connection.local_host)

    def advertised_by(self, name: str, came_to: str | None = None) -> Address:
        """The same of a listener; without somebody who came, for clients on this machine."""
        if name in self._advertised:
            return self._advertised[name]
        address = self.all[name].address
        if not address.is_wildcard:
            return address
        return Address(came_to or ("::1" if address.is_ipv6 else "127.0.0.1"), address.port)

    def advertised_text(self, connection: Connection) -> str:
        """All of them, as `advertised.listeners` would have it."""
        told = (self.advertised_by(name, connection.local_host) for name in self.all)
        return ",".join(f"{name}://{one}" for name, one in zip(self.all, told, strict=True))

    # Settings that change while it runs

    def check(self, settings: Settings) -> None:
        if self._security(settings) != self._loaded:
            for listener in self.all.values():
                listener.check(settings)

    def _settings_changed(self) -> None:
        self.set_limits()
        security = self._security()
        if security != self._loaded:
            self._loaded = security
            for listener in self.all.values():
                listener.reload()

    def _security(self, settings: Settings | None = None) -> object:
        """What listeners read when they start, to know when it has changed."""
        from semel.broker.settings.of_security import SECURITY_SETTINGS

        settings = settings if settings is not None else self._broker.settings
        own = [(name, settings.given(name)) for name in settings.names_given()]
        return own, [settings[setting.name] for setting in SECURITY_SETTINGS]

    def set_limits(self) -> None:
        settings, shares = self._broker.settings, self._broker.shares
        most, largest = settings["queued.max.request.bytes"], settings["socket.request.max.bytes"]
        self.memory.limit = 1 << 62 if most < 0 else max(most, largest)
        for listener in self.all.values():
            limits = listener.net.limits
            limits.set_max_frame_size(largest)
            limits.max_connections = min(settings["max.connections"], shares.connections)
            limits.max_connections_per_address = settings["max.connections.per.ip"]
            limits.max_waiting = settings["queued.max.requests"]
            limits.idle_seconds = settings["connections.max.idle.ms"] / 1000
            limits.backlog = settings["socket.listen.backlog.size"]
            limits.send_buffer = settings["socket.send.buffer.bytes"]
            limits.receive_buffer = settings["socket.receive.buffer.bytes"]
