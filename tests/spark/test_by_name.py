"""A plain session finds the format by its name, both ways."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import pyspark_semel
from semel.spark.sessions.java import use_java
from semel.spark.source.source import SemelSource


def test_spark_finds_the_source_under_the_name_it_looks_for():
    assert pyspark_semel.DefaultSource is SemelSource


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_program_that_does_not_import_semel_reads_and_writes_exactly_once(kafka, tmp_path):
    use_java()
    plan = {"bootstrap": kafka.bootstrap, "first": kafka.topic(), "second": kafka.topic()}
    plan["checkpoint"] = str(tmp_path / "checkpoint")
    program = str(Path(__file__).with_name("by_name.py"))
    done = subprocess.run(
        [sys.executable, program, json.dumps(plan)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert kafka.values(plan["second"]) == Counter(map(str, range(100)))
