"""`kernel`: compiles a function once per machine, ahead of its first call, and keeps it in the
user's cache directory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from semel.columnar import cache

F = TypeVar("F", bound=Callable[..., Any])

#: Called with a kernel's name before it is compiled or loaded, for those who show progress.
observers: list[Callable[[str], None]] = []


def kernel(signature: str) -> Callable[[F], F]:
    """Compile with an explicit signature, so that nothing is compiled in the middle of a task."""

    def compile_now(function: F) -> F:
        for observe in observers:
            observe(function.__name__)
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


_CACHE = str(cache.directory())
