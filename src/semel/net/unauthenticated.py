"""The host of connections whose clients have not authenticated yet: small frames, few requests.
`Connection.move_to` gives them to the listener afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from semel.net.connection import Connection
from semel.net.watching import Watcher

if TYPE_CHECKING:
    from semel.net.listener import Listener

#: How many requests may wait for their answer: those who authenticate ask one after another.
MOST_WAITING = 8


class SmallLimits:
    """Those of a host that takes small frames only."""

    def __init__(self, max_frame_size: int) -> None:
        self.max_waiting = MOST_WAITING
        self.set_max_frame_size(max_frame_size)

    def set_max_frame_size(self, size: int) -> None:
        self.max_frame_size = self.short_frame_size = size


class UnauthenticatedHost:
    def __init__(
        self,
        listener: Listener,
        receive: Callable[[Connection, bytearray], Any],
        max_frame_size: int,
    ) -> None:
        self._listener = listener
        self.name = listener.name
        self.principal = listener.principal
        self.scratch = listener.scratch
        self.spare: bytearray | None = None
        self.memory = listener.memory
        self.turns = listener.turns
        self.receive = self.receive_large = receive
        self.finish: Callable[[], None] = lambda: None  # nothing is gathered here
        self.limits = SmallLimits(max_frame_size)

    @property
    def watcher(self) -> Watcher:
        return self._listener.watcher

    def forget(self, connection: Connection) -> None:
        self._listener.forget(connection)

    def greeted(self, connection: Connection) -> None:
        """TLS alone does not tell who it is."""

    def let_in(self, connection: Connection) -> None:
        self._listener.admitted(connection)
        connection.move_to(self._listener)
