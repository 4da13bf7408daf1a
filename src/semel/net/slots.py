"""Places in the order of a connection's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semel.net.connection import Connection


class Slot:
    """A place in the order of answers, filled later."""

    __slots__ = ("connection", "filled", "frame", "request_size")

    def __init__(self, connection: Connection, request_size: int) -> None:
        self.connection = connection
        self.request_size = request_size
        self.filled = False
        self.frame: Any = None

    def fill(self, frame: Any) -> None:
        """Give the answer, or None for none."""
        self.frame = frame
        self.filled = True
        self.connection._slot_filled()

    def release(self) -> None:
        """Let later requests start, although the answer is not there yet."""
        self.connection._released(self)
