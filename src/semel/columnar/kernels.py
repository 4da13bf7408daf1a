"""Which kernels to use: the compiled ones once they are ready, the plain ones until then.

Compiling takes some seconds, once per machine and version: `load` waits for it, `ready` never does.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from types import ModuleType
from typing import Any

from semel.columnar import cache, plain

log = logging.getLogger(__name__)


class Kernels:
    """The functions that do the work on every row."""

    def __init__(self, encode: ModuleType, decode: ModuleType, rows_per_turn: int) -> None:
        self.assign_lanes: Any = encode.assign_lanes
        self.scatter: Any = encode.scatter
        self.decode_records: Any = decode.decode_records
        self.rows_per_turn = rows_per_turn


_lock = threading.Lock()
_compiled: Kernels | None = None
_loading: threading.Thread | None = None

PLAIN = Kernels(plain, plain, plain.ROWS_PER_TURN)
# Twenty nanoseconds a row: a turn of the event loop stays below some milliseconds.
_COMPILED_ROWS_PER_TURN = 100_000


def load() -> Kernels:
    """The compiled kernels, after some seconds where this machine has not compiled them yet."""
    global _compiled
    with _lock:
        if _compiled is None:
            from semel.columnar import decode_kernels, encode_kernels

            _compiled = Kernels(encode_kernels, decode_kernels, _COMPILED_ROWS_PER_TURN)
            cache.settle()
        return _compiled


def ready() -> Kernels:
    """The compiled kernels if they are here, else the plain ones, and those are sent for."""
    global _loading
    if _compiled is not None:
        return _compiled
    if _loading is None:
        _loading = threading.Thread(target=_load_quietly, name="semel-kernels", daemon=True)
        _loading.start()
    return PLAIN


def _load_quietly() -> None:
    try:
        _compile_elsewhere()
        load()
    except Exception:
        log.warning("the columnar kernels cannot be compiled: plain Python goes on", exc_info=True)


def _compile_elsewhere() -> None:
    """In another process: compiling in a thread would take half of this one's time."""
    if not cache.is_complete():
        command = [sys.executable, "-c", f"from {__name__} import load; load()"]
        # Where it fails (an interpreter inside another program, say), `load` compiles here.
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True)
