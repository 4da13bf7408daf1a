"""Once per Python worker process: keeps PySpark's garbage collection short."""

from __future__ import annotations

import gc

_frozen = False


def freeze_imports() -> None:
    """PySpark collects garbage after every task: 58 ms each with numba and pyarrow loaded.

    What the imports have left behind lives as long as the process, so the collector is told to
    ignore it.
    """
    global _frozen
    if not _frozen:
        _frozen = True
        gc.collect()
        gc.freeze()
