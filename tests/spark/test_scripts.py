"""The Python that Spark's workers run on."""

import os
import subprocess
from pathlib import Path

import pyspark

from semel.spark.sessions.scripts import worker_python

HOME = Path(pyspark.__file__).parent
ARCHIVES = [
    *sorted(map(str, HOME.glob("python/lib/*.zip"))),
    *sorted(map(str, HOME.glob("jars/spark-core*.jar"))),
]
SHOW = "import os, pyspark; print(pyspark.__file__); print(os.environ['PYTHONPATH'])"


def run(*path):
    done = subprocess.run(
        [worker_python(), "-c", SHOW],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_workers_take_pyspark_from_where_it_is_compiled(tmp_path):
    """Spark puts two archives and a jar first; whatever else is on the path stays there."""
    assert len(ARCHIVES) == 3
    assert run(*ARCHIVES, str(tmp_path), "/else where") == [
        pyspark.__file__,
        f"{tmp_path}:/else where",
    ]
    assert run(*ARCHIVES) == [pyspark.__file__, ""]
    assert run(str(tmp_path)) == [pyspark.__file__, str(tmp_path)]


def test_the_script_is_written_where_the_user_s_cache_is(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEL_CACHE", str(tmp_path))
    assert Path(worker_python()).parent == tmp_path / "semel"
