"""PySpark's worker daemon with the heavy imports done before it forks.

Every Python worker is a fork of the daemon; without this each of them imports Arrow, numba and the
kernels for itself, two seconds of processor time a worker. `session` sets it as
`spark.python.daemon.module`.
"""

from __future__ import annotations

from pyspark.daemon import manager

import semel.spark.sink.writer  # noqa: F401
from semel.spark.sessions.worker import freeze_imports

if __name__ == "__main__":
    freeze_imports()
    manager()
