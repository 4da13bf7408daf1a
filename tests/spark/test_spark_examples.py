"""The examples and the pipeline command, run as a user would."""

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from semel.cli.__main__ import main
from semel.spark import pipeline as pipelines

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]
EXAMPLES = Path(__file__).parents[2] / "examples"


def run_example(name, *arguments):
    return runpy.run_path(str(EXAMPLES / name))["main"](*arguments)


def test_the_pipeline_example_counts_every_click(kafka, spark, tmp_path):
    run_example("spark_pipeline.py", kafka.bootstrap, str(tmp_path))
    last = {m.key().decode(): int(m.value()) for m in kafka.messages("clicks-per-page")}
    assert last == {f"page-{number}": 200 for number in range(5)}


def test_the_batch_example_writes_once(kafka, spark):
    assert run_example("spark_batch_write.py", kafka.bootstrap) == 1000
    assert run_example("spark_batch_write.py", kafka.bootstrap) == 0
    assert len(kafka.messages("prices")) == 1000


SHOUT = """
from pyspark.sql import functions as f

def loud(word):
    return word.upper() + "!"

def shout(rows):
    return rows.select("key", f.udf(loud)("value").alias("value"))
"""


@pytest.fixture
def given(kafka, tmp_path):
    """A file, and what it reads and writes; its words are in the topic."""
    source, sink = kafka.topic(), kafka.topic()
    producer = kafka.producer()
    for word in ("to", "be", "or"):
        producer.produce(source, word, key=word)
    producer.flush()
    settings = {
        "application": f"shout-{sink}",
        "bootstrap_servers": kafka.bootstrap,
        "source": source,
        "sink": sink,
        "transform": "SELECT key, upper(value) AS value FROM source",
        "checkpoint": str(tmp_path / "checkpoint"),
    }

    def write(**changes):
        chosen = {name: v for name, v in {**settings, **changes}.items() if v is not None}
        path = tmp_path / "pipeline.toml"
        path.write_text("".join(f"{name} = {json.dumps(v)}\n" for name, v in chosen.items()))
        return path

    return write, source, sink


def run_file(path):
    return main(["pipeline", "run", str(path), "--once"])


def test_a_pipeline_runs_from_a_file(kafka, spark, given, capsys):
    write, source, sink = given
    assert run_file(write()) == 0
    assert kafka.values(sink) == Counter(["TO", "BE", "OR"])
    screen = capsys.readouterr().out
    assert "3 rows in 1 batch," in screen
    assert f"committed {source} 0:" in screen
    assert screen.endswith("lag 0\n")


def test_a_file_may_name_a_python_function(kafka, spark, given, tmp_path):
    write, _, sink = given
    (tmp_path / "shout.py").write_text(SHOUT)
    assert run_file(write(transform=None, function="shout.py:shout")) == 0
    assert kafka.values(sink) == Counter(["TO!", "BE!", "OR!"])


def test_a_python_file_may_hold_the_pipeline(kafka, spark, given, tmp_path, capsys):
    write, _, sink = given
    settings = tomllib.loads(write(transform=None).read_text())
    path = tmp_path / "shout_pipeline.py"
    path.write_text(
        f"{SHOUT}\nfrom semel.spark import Pipeline\n"
        f"pipeline = Pipeline(**{settings!r}, transform=shout)\n"
    )
    assert run_file(path) == 0
    assert kafka.values(sink) == Counter(["TO!", "BE!", "OR!"])
    assert "3 rows in 1 batch," in capsys.readouterr().out


def test_a_file_s_tables_reach_the_broker_and_spark(kafka, spark, given, capsys):
    write, _, sink = given
    path = write(transform="SELECT key, current_timezone() AS value FROM source")
    settings = path.read_text()
    usual = spark.conf.get("spark.sql.session.timeZone")
    path.write_text(f'{settings}[spark]\n"spark.sql.session.timeZone" = "Asia/Tokyo"\n')
    assert run_file(path) == 0
    spark.conf.set("spark.sql.session.timeZone", usual)
    assert kafka.values(sink) == Counter(["Asia/Tokyo"] * 3)
    path.write_text(f'{settings}[settings]\n"security.protocol" = "SASL-SSL"\n')
    assert run_file(path) == 2
    assert "security_protocol 'SASL-SSL': use one of" in capsys.readouterr().err


# Its tasks write and then wait, and the first grant is when the signal comes.
HELD = """
import os, pathlib, time
from semel.spark import Pipeline
from semel.spark import pipeline as pipelines

hold, number = pathlib.Path({hold!r}), {number}

def held(batches):
    yield from batches
    while hold.exists():
        time.sleep(0.05)

def strike(point, batch):
    if point == "grant" and hold.exists() and not struck:
        struck.append(point)
        os.kill(os.getpid(), number)

struck = []

class StruckSink(pipelines.ExactlyOnceSink):
    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.committer.at = strike

pipelines.ExactlyOnceSink = StruckSink
pipeline = Pipeline(
    **{settings!r},
    transform=lambda rows: rows.select("key", "value").mapInArrow(held, "key string, value string"),
    sink_options={{"batch_size": 1}},
)
"""


@pytest.fixture
def held(kafka, tmp_path, monkeypatch):
    """A Python file that is struck in the middle of a batch while the file `hold` is there."""
    # Run in this process, the file puts a sink of its own here: it must not outlive the test.
    monkeypatch.setattr(pipelines, "ExactlyOnceSink", pipelines.ExactlyOnceSink)

    def write(number):
        source, sink = kafka.topic(1), kafka.topic()
        producer = kafka.producer()
        # Spark hands on ten thousand at once: the first are written while the last are held.
        rows = [f"{row:05d}".ljust(50, ".") for row in range(30_000)]
        for row in rows:
            producer.produce(source, row, key=row[:5])
        producer.flush()
        settings = {
            "application": f"held-{sink}",
            "bootstrap_servers": kafka.bootstrap,
            "source": source,
            "sink": sink,
            "checkpoint": str(tmp_path / "checkpoint"),
        }
        hold = tmp_path / "hold"
        hold.touch()
        path = tmp_path / "held.py"
        path.write_text(HELD.format(hold=str(hold), number=int(number), settings=settings))
        return path, hold, sink, rows

    return write


def test_a_signal_aborts_the_batch_and_ends_with_a_summary(kafka, spark, held, capsys):
    path, hold, sink, rows = held(signal.SIGTERM)
    assert main(["pipeline", "run", str(path)]) == 0
    screen = capsys.readouterr().out
    assert "stopped; it goes on from here when started again" in screen
    assert "0 rows in 0 batches" in screen
    assert kafka.values(sink) == Counter()
    written = len(kafka.messages(sink, isolation="read_uncommitted"))
    hold.unlink()
    assert run_file(path) == 0
    assert kafka.values(sink) == Counter(rows)
    assert written > 0


@pytest.mark.soak
def test_ctrl_c_leaves_no_process_behind(kafka, held):
    """As on a terminal: every process of the group hears it, and Spark has several."""
    path, hold, sink, rows = held(0)
    command = [sys.executable, "-m", "semel.cli", "pipeline", "run", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        try:
            while not kafka.messages(sink, isolation="read_uncommitted"):
                assert running.poll() is None, running.stderr.read()
            os.killpg(running.pid, signal.SIGINT)
            screen, errors = running.communicate(timeout=120)
        finally:
            left = processes_of(running.pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert (running.returncode, left) == (0, [])
    assert "stopped; it goes on" in screen
    assert "Exception" not in errors
    hold.unlink()
    assert run_file(path) == 0
    assert kafka.values(sink) == Counter(rows)


def processes_of(session):
    """What lives of a session; the dead may wait for their parent to ask."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(entry.name)) == session and (entry / "cmdline").read_bytes():
                found.append((entry / "cmdline").read_bytes())
    return found


def test_a_pipeline_that_fails_says_why_in_a_sentence(kafka, spark, given, capsys):
    write, _, _ = given
    assert run_file(write(source="nowhere", application="lost")) == 1
    assert "semel: topic 'nowhere': this broker knows no such topic" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.toml", "applicaton = 'x'", "unknown settings: applicaton"),
        ("a.toml", "application = 'x'", "missing"),
        ("a.py", "x = 1", "no Pipeline"),
        ("a.toml", "function = 'a.toml:f'\ntransform = 'x'", "not both"),
        ("b.toml", "function = 'missing.py:f'", "missing.py"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_a_sentence(tmp_path, name, text, sentence, capsys):
    path = tmp_path / name
    path.write_text(text)
    assert run_file(path) == 2
    assert sentence in capsys.readouterr().err
