"""Spark's own Kafka connector, for comparison: fetched by Maven into the user's cache directory."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

# The connector's 4.3.0 is not on Maven Central; these versions work together on Spark 4.3.0.
ARTIFACTS = [
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
]
_DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency>"""


def connector_jars() -> list[Path] | None:
    """The jars, or None where they cannot be had."""
    base = os.environ.get("SEMEL_CACHE") or os.environ.get("XDG_CACHE_HOME")
    target = (Path(base) if base else Path.home() / ".cache") / "semel" / "spark-kafka-4.2.0"
    if not (target / "complete").exists():
        maven = shutil.which("mvn")
        if maven is None:
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            pom = Path(scratch) / "pom.xml"
            pom.write_text(
                "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId>"
                "<artifactId>x</artifactId><version>1</version><dependencies>"
                + "".join(_DEPENDENCY.format(*artifact) for artifact in ARTIFACTS)
                + "</dependencies></project>"
            )
            jars = Path(scratch) / "lib"
            fetch = [maven, "-q", "-B", "dependency:copy-dependencies"]
            done = subprocess.run([*fetch, f"-DoutputDirectory={jars}"], cwd=scratch, check=False)
            if done.returncode:
                return None
            (jars / "complete").touch()
            shutil.rmtree(target, ignore_errors=True)
            jars.rename(target)
    return sorted(target.glob("*.jar"))
