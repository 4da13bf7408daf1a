"""Small shell scripts that stand before a program, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import sys
from pathlib import Path

from semel.columnar.cache import user_cache

# Spark puts archives of its Python files, and a jar, before anything else on the path. Archives
# hold no compiled code: a Python that plans a streaming query compiled PySpark anew, 1.5 s of
# processor time a query, though the same files lay compiled beside them.
_PYTHON = """#!/bin/sh
PYTHONPATH="$PYTHONPATH:"
for each in pyspark py4j jar; do
  case "$PYTHONPATH" in
    {home}/python/lib/*.zip:* | {home}/jars/*.jar:*) PYTHONPATH="${{PYTHONPATH#*:}}" ;;
  esac
done
export PYTHONPATH="${{PYTHONPATH%:}}"
exec {python} "$@"
"""


def worker_python() -> str:
    """This very Python, for Spark's workers: it takes PySpark from where it is installed."""
    import pyspark

    home = Path(pyspark.__file__).parent
    if os.name != "posix" or not home.is_dir():
        return sys.executable
    text = _PYTHON.format(home=shlex.quote(str(home)), python=shlex.quote(sys.executable))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        script = executable(user_cache() / "semel" / f"python-{digest}", text)
    except OSError:
        return sys.executable  # a cache that cannot be written is slow, not wrong …
    return str(script) if os.access(script, os.X_OK) else sys.executable  # … nor one without exec


def executable(path: Path, text: str) -> Path:
    """Writes a script where it is not there already; readers never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        fresh.rename(path)
    return path
