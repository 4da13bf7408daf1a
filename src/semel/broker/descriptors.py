"""File descriptors: how many this process may have, and how they are shared out.

A broker that gives all of them to its logs can accept no client, and one whose clients take all can
open no log. Each gets half of what is free, and some are kept for everything else.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from typing import NamedTuple

#: For files that are open for a moment: catalog, checkpoints, snapshots, a listing of a directory.
RESERVE = 64
#: More files than this are never worth keeping open.
MOST_FILES = 1 << 14
LEAST = 16


class Shares(NamedTuple):
    files: int
    connections: int


def raise_limit() -> None:
    """Take all that the operating system allows. For a process that is a broker and nothing else:
    other programs may rely on small descriptors (`select`)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # macOS says "unlimited" and means less
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def share_out() -> Shares:
    """What logs and connections may have, as of now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return Shares(MOST_FILES, 2**31 - 1)
    free = soft - _in_use() - RESERVE
    files = min(MOST_FILES, max(LEAST, free // 2))
    return Shares(files, max(LEAST, free - files))


def _in_use() -> int:
    for listing in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(listing))
    return 0
