"""The examples and the pipeline command, run as a user would."""

import argparse
import json
import runpy
from collections import Counter
from pathlib import Path

import pytest

from semel.cli import pipeline as command

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


@pytest.fixture
def file(kafka, tmp_path):
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
    path = tmp_path / "pipeline.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
    return path, sink


def test_a_pipeline_runs_from_a_file(kafka, spark, file, capsys):
    path, sink = file
    given = argparse.Namespace(file=path, master=None, bootstrap=None, once=True)
    assert command.run(given) == 0
    assert kafka.values(sink) == Counter(["TO", "BE", "OR"])
    assert "3 rows in 1 batches" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.toml", "applicaton = 'x'", "unknown settings: applicaton"),
        ("a.toml", "application = 'x'", "missing"),
        ("a.py", "x = 1", "no Pipeline"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_a_sentence(tmp_path, name, text, sentence, capsys):
    path = tmp_path / name
    path.write_text(text)
    given = argparse.Namespace(file=path, master=None, bootstrap=None, once=True)
    assert command.run(given) == 2
    assert sentence in capsys.readouterr().err
