"""Lines of standard input, read beside the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator

from semel.cli.exits import CommandError, usage

_CHUNK = 1 << 16
#: Chunks read ahead of those who take them.
_AHEAD = 4


async def input_lines() -> AsyncIterator[list[bytes]]:
    """Lines without their ends, as many at a time as there are.

    The thread that reads is left behind when the command ends: a read from a terminal cannot be
    called off. It reads the descriptor itself, because an interpreter that ends must not wait for
    the lock of `sys.stdin`.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)
    if sys.stdin is None:
        raise usage("there is no standard input to read lines from")
    descriptor = sys.stdin.fileno()

    def read() -> None:
        chunk: bytes | OSError = b"."
        while chunk and not isinstance(chunk, OSError):
            room.acquire()
            try:
                chunk = os.read(descriptor, _CHUNK)
            except OSError as problem:
                chunk = problem
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:  # the command has ended
                return

    threading.Thread(target=read, name="semel-input", daemon=True).start()
    begun: list[bytes] = []  # of a line whose end has not come yet
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise CommandError(f"standard input cannot be read: {chunk.strerror}")
        room.release()
        first, *others = chunk.split(b"\n")
        begun.append(first)
        if others:
            *whole, last = others
            yield [b"".join(begun), *whole]
            begun = [last]
    if rest := b"".join(begun):
        yield [rest]
