"""The memory that requests take until they are answered: counted over all connections of a broker.

A frame is counted as far as it was read, so that a promise of a hundred megabytes costs its sender
a hundred megabytes first. While too much is held, connections in the middle of a large frame stop
reading and stand in line. The first in line reads on, whatever is held, so that somebody is always
done next; the others follow in order. Requests that are whole at once hold nothing, and are served
all the while. Whoever is first, and slow, is closed if others wait for it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

#: A frame that others wait for has this long, and so long for each of its bytes.
PATIENCE_SECONDS = 10.0
SLOWEST_BYTES_PER_SECOND = 1 << 20
LOOK_SECONDS = 1.0
#: What one that reads on may add before it is looked at again.
STEP = 1 << 20


class Reader(Protocol):
    def pause_reading(self) -> None: ...
    def read_again(self) -> None: ...
    def close(self, reason: str | None = None) -> None: ...


class RequestMemory:
    def __init__(self, limit: int = 1 << 62) -> None:
        self.limit = limit
        self.held = 0
        self.most_held = 0
        self._first: Reader | None = None  # reads on, whatever is held …
        self._first_until = 0.0  # … up to this time, if others wait
        self._line: dict[Reader, int] = {}  # do not read; the sizes of their frames
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, more: int) -> None:
        """Count what came, or less than nothing: what was given back."""
        self.held += more
        self.most_held = max(self.most_held, self.held)

    @property
    def is_full(self) -> bool:
        return self.held > self.limit

    def queue(self, reader: Reader, size: int, loop: asyncio.AbstractEventLoop) -> None:
        """Too much is held, and this one is in the middle of a frame of `size` bytes."""
        if reader is self._first or reader in self._line:
            return
        if self._first is None:
            self._put_first(reader, size, loop.time())
            return
        self._line[reader] = size
        reader.pause_reading()
        if self._timer is None:
            self._timer = loop.call_later(LOOK_SECONDS, self._tick, loop)

    def leave(self, reader: Reader, now: float) -> None:
        """It gave something back: its frame is whole, or it has ended."""
        if self._line.pop(reader, None) is not None:
            reader.read_again()
        if reader is self._first:
            self._first = None
        self.look(now)

    def look(self, now: float) -> None:
        """After something was given back: let those read for whom there is room, or one."""
        room = (self.limit - self.held) // STEP
        if room > 0:
            self._first = None
        while self._line and (room > 0 or self._first is None):
            reader, size = next(iter(self._line.items()))
            del self._line[reader]
            if room <= 0:
                self._put_first(reader, size, now)
            reader.read_again()
            room -= 1

    def _put_first(self, reader: Reader, size: int, now: float) -> None:
        self._first = reader
        self._first_until = now + PATIENCE_SECONDS + size / SLOWEST_BYTES_PER_SECOND

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._line and self._first is not None and loop.time() > self._first_until:
            self._first.close("its request came too slowly while others waited for memory")
        if self._line:
            self._timer = loop.call_later(LOOK_SECONDS, self._tick, loop)


class Spare(Protocol):
    spare: bytearray | None


def empty_frame(host: Spare, size: int) -> bytearray:
    """The last large frame again if nobody looks into it any more: Python fills a new one with
    zeros first, which costs a twentieth of all that is done to a megabyte."""
    spare, host.spare = host.spare, None
    if spare is None or size > 2 * len(spare):
        return bytearray(size)
    try:
        spare.append(0)  # refused as long as a view of it is alive
    except BufferError:
        return bytearray(size)
    del spare[size:]
    spare.extend(bytes(size - len(spare)))
    return spare
