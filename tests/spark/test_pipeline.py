"""Whole pipelines: SQL or a function between topics, stateless and stateful."""

import json
from collections import Counter

import pytest

from semel.spark import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture
def words(kafka):
    """A topic of a thousand words with few different ones."""
    topic = kafka.topic(3)
    producer = kafka.producer()
    rows = [f"word-{i % 7}" for i in range(1000)]
    for number, row in enumerate(rows):
        producer.produce(topic, row, key=str(number))
    producer.flush()
    return topic, rows


def test_sql_between_two_topics_reports_its_progress(kafka, spark, words, tmp_path):
    topic, rows = words
    output = kafka.topic(2)
    seen = []
    Pipeline(
        application=f"shout-{output}",
        bootstrap=kafka.bootstrap,
        source=topic,
        transform="SELECT key, upper(value) AS value FROM source WHERE value != 'word-3'",
        sink=output,
        checkpoint=str(tmp_path),
        options={"maxOffsetsPerTrigger": "400"},
    ).run(spark, seen.append, availableNow=True)
    assert kafka.values(output) == Counter(row.upper() for row in rows if row != "word-3")
    assert sum(progress.rows for progress in seen) == sum(kafka.values(output).values())
    assert [progress.lag for progress in seen] == [600, 200, 0]


def test_a_stateful_function_counts_exactly_once_over_batches(kafka, spark, words, tmp_path):
    topic, rows = words
    output = kafka.topic(1)

    def count(frame):
        totals = frame.groupBy("value").count()
        return totals.selectExpr("value AS key", "to_json(struct(value, count)) AS value")

    Pipeline(
        application=f"count-{output}",
        bootstrap=kafka.bootstrap,
        source=topic,
        transform=count,
        sink=output,
        checkpoint=str(tmp_path),
        mode="update",
        options={"maxOffsetsPerTrigger": "400"},
    ).run(spark, availableNow=True)
    last = {}
    for message in kafka.messages(output):
        total = json.loads(message.value())
        last[total["value"]] = total["count"]
    assert last == Counter(rows)
