"""What a connection and its surroundings expect of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from semel.net.memory import RequestMemory
from semel.net.turns import Turns
from semel.net.watching import Watcher

if TYPE_CHECKING:
    from semel.net.connection import Connection


class Limits(Protocol):
    max_frame_size: int
    short_frame_size: int
    max_waiting: int


class Host(Protocol):
    """What a connection needs of its listener. The frame that `receive` is given is its own for the
    length of the call; what shall last longer is copied, or holds a view of the frame. It returns
    the answer (a `wire.frames.Frame`), or None if that is given to the connection by somebody, then
    or later. `finish` follows when all frames read in one go were given, before anything is sent,
    unless there was but one and it was answered."""

    name: str
    principal: Any
    scratch: bytearray
    spare: bytearray | None
    memory: RequestMemory
    turns: Turns
    receive: Callable[[Connection, bytearray], Any]
    receive_large: Callable[[Connection, bytearray], Any]
    finish: Callable[[], None]

    @property
    def watcher(self) -> Watcher: ...
    @property
    def limits(self) -> Limits: ...
    def forget(self, connection: Connection) -> None: ...
    def greeted(self, connection: Connection) -> None:
        """The TLS handshake is over."""


class Waiting(Protocol):
    """Something that waits on behalf of a connection, and need not when that has ended."""

    def abandon(self) -> None: ...
