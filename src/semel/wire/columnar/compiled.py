"""`kernel`: compiles a function once per machine, ahead of its first call, and keeps it in the
user's cache directory.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def cache_directory() -> Path:
    """Where compiled kernels live: one directory per version of this package's sources.

    Numba notices a change in the kernel's own file only, not in the helpers it calls from other
    files; hashing all sources into the path makes a stale kernel impossible.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    return _user_cache() / "semel" / f"kernels-{digest}"


def kernel(signature: str) -> Callable[[F], F]:
    """Compile with an explicit signature, so that nothing is compiled in the middle of a task."""

    def compile_now(function: F) -> F:
        config: Any = numba.config
        saved = config.CACHE_DIR
        config.CACHE_DIR = _CACHE
        try:
            compiled: Any = numba.njit(signature, cache=True, nogil=True)(function)
        finally:
            config.CACHE_DIR = saved
        return cast(F, compiled)

    return compile_now


def helper(function: F) -> F:
    """A function only called from kernels, compiled into them."""
    compiled: Any = numba.njit(function)
    return cast(F, compiled)


def _user_cache() -> Path:
    chosen = os.environ.get("SEMEL_CACHE") or os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    home = Path(os.path.expanduser("~"))
    # A Spark executor may run as a user without a home.
    if not os.access(home, os.W_OK):
        return Path(tempfile.gettempdir()) / f"semel-{os.getuid()}"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache")


_CACHE = str(cache_directory())
