"""Spark's own Kafka connector, for comparison: fetched once into the user's cache directory.

Spark brings Ivy along, which finds packages by name; neither Maven nor a running Spark is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

# The connector's 4.3.0 is not on Maven Central; these versions work together on Spark 4.3.0.
PACKAGES = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
# `master` is the package alone: what it depends on comes with Spark.
_DEPENDENCY = '<dependency org="{}" name="{}" rev="{}" conf="default->master"/>'
_IVY = """<ivy-module version="2.0"><info organisation="semel" module="connector"/>
<configurations><conf name="default"/></configurations><dependencies>{}</dependencies>
</ivy-module>"""


def cached_jars() -> list[Path] | None:
    """The jars, if they were fetched before."""
    target = _target()
    return sorted(target.glob("*.jar")) if (target / "complete").exists() else None


def connector_jars(timeout_s: float = 120.0) -> list[Path] | None:
    """The jars, or None where they cannot be had."""
    found = cached_jars()
    if found is not None:
        return found
    target = _target()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        fetched = _fetch(Path(scratch), timeout_s)
        if fetched is None:
            return None
        shutil.rmtree(target, ignore_errors=True)
        fetched.rename(target)
    return cached_jars()


def _fetch(scratch: Path, timeout_s: float) -> Path | None:
    wanted = "".join(_DEPENDENCY.format(*package) for package in PACKAGES)
    (scratch / "ivy.xml").write_text(_IVY.format(wanted))
    jars = scratch / "jars"
    command = [
        _java(), "-cp", str(_spark_jars() / "*"), "org.apache.ivy.Main",
        "-ivy", str(scratch / "ivy.xml"), "-cache", str(scratch / "cache"),
        "-retrieve", str(jars / "[artifact]-[revision].[ext]"),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode or len(list(jars.glob("*.jar"))) != len(PACKAGES):
        return None
    (jars / "complete").touch()
    return jars


def _java() -> str:
    from semel.spark.sessions.java import use_java

    use_java()
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _spark_jars() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "jars"


def _target() -> Path:
    base = os.environ.get("SEMEL_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "semel" / "spark-kafka-4.2.0"
