"""What is ready to be sent on a connection, in order: bytes, and stretches of files."""

from __future__ import annotations

import os
import socket
from collections import deque
from typing import Any, Protocol

#: Smaller regions are cheaper copied and joined with their neighbours than sent alone. CPU per
#: answer, copied | by sendfile: 48 KiB 36 | 54 µs, 128 KiB 56 | 64, 256 KiB 81 | 82 (best of 5);
#: 1 MiB 609 | 224, 4 MiB 6628 | 1253 (best of 2). Busy machine: the crossing is a rough place.
SMALLEST_SENDFILE = 1 << 17

#: Beyond this, what is not sent yet stays in its file: a client that does not read its answers
#: costs no more memory than that.
MOST_COPIED = 1 << 20


class OutgoingRegion(Protocol):
    """A stretch of a file, or of memory where `fd` is negative."""

    fd: int
    position: int

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...


class FileEnded(Exception):
    """A file is shorter than promised: the answer cannot be completed."""


class Outbox:
    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        self._parts: deque[Any] = deque()  # none of them empty
        self.size = 0

    def put(self, frame: Any) -> None:
        """Cut a `wire.frames.Frame` at its regions; small ones are read now and joined."""
        regions = frame.regions
        if not regions:
            self._append(frame)
            return
        view = memoryview(frame)
        done = 0
        for position, region in regions:
            self._append(view[done:position])
            is_small = len(region) < SMALLEST_SENDFILE and self.size < MOST_COPIED
            is_small = is_small or region.fd < 0
            self._append(bytes(region) if is_small else UnsentRegion(region))
            done = position
        self._append(view[done:])

    def put_rest(self, data: bytes | bytearray, sent: int) -> None:
        """Of something that was begun to be sent while there was nothing here."""
        self._append(memoryview(data)[sent:])

    def _append(self, part: Any) -> None:
        if size := len(part):
            self._parts.append(part)
            self.size += size

    def send(self, to: socket.socket) -> None:
        """Give the socket what it takes at once: all bytes up to the next file, or a file."""
        first = self._parts[0]
        if isinstance(first, UnsentRegion):
            sent = os.sendfile(to.fileno(), first.fd, first.position, len(first))
            if not sent:
                raise FileEnded(f"a file ended {len(first)} bytes early")
        else:
            first = self._join()
            sent = to.send(first)
        self.size -= sent
        if sent == len(first):
            self._parts.popleft()
        else:
            self._parts[0] = first[sent:]

    def _join(self) -> memoryview:
        """Make one of all the bytes up to the next file."""
        parts = self._parts
        first = parts.popleft()
        if parts and not isinstance(parts[0], UnsentRegion):
            chunks = [first]
            while parts and not isinstance(parts[0], UnsentRegion):
                chunks.append(parts.popleft())
            first = b"".join(chunks)
        view = memoryview(first)
        parts.appendleft(view)
        return view

    def clear(self) -> None:
        self._parts.clear()
        self.size = 0


class UnsentRegion:
    """What is left to send of a region; keeps the region, and so its file, alive."""

    __slots__ = ("_size", "fd", "position", "region")

    def __init__(self, region: OutgoingRegion, done: int = 0) -> None:
        self.region = region
        self.fd = region.fd
        self.position = region.position + done
        self._size = len(region) - done

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, rest: slice) -> UnsentRegion:
        return UnsentRegion(self.region, len(self.region) - self._size + rest.start)
