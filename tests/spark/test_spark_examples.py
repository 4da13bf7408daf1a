"""The examples and the pipeline command, run as a user would."""

import json
import runpy
from collections import Counter
from pathlib import Path

import pytest

from semel.cli.__main__ import main

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
        "bootstrap": kafka.bootstrap,
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


def test_a_pipeline_that_fails_says_why_in_a_sentence(kafka, spark, given, capsys):
    write, _, _ = given
    assert run_file(write(source="nowhere", application="lost")) == 1
    assert "semel: topic 'nowhere': UNKNOWN_TOPIC_OR_PARTITION" in capsys.readouterr().err


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
