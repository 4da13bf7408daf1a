"""Whole pipelines: SQL or a function between topics, stateless and stateful."""

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
        bootstrap_servers=kafka.bootstrap,
        source=topic,
        transform="SELECT key, upper(value) AS value FROM source WHERE value != 'word-3'",
        sink=output,
        checkpoint=str(tmp_path),
        options={"maxOffsetsPerTrigger": "400"},
    ).run(spark, seen.append, availableNow=True)
    assert kafka.values(output) == Counter(row.upper() for row in rows if row != "word-3")
    assert sum(progress.rows for progress in seen) == sum(kafka.values(output).values())
    assert [progress.lag for progress in seen] == [600, 200, 0]
    assert [sum(progress.committed.values()) for progress in seen] == [400, 800, 1000]


def counted(source):
    totals = source.groupBy("value").count()
    return totals.selectExpr("value AS key", "concat(value, ' ', count) AS value")


def first_of_each(source):
    return source.dropDuplicatesWithinWatermark(["value"]).select("key", "value")


JOINED = """SELECT a.key, concat(a.value, ' ', b.value) AS value FROM a JOIN b ON a.key = b.key
            AND b.timestamp BETWEEN a.timestamp - INTERVAL 1 HOUR AND a.timestamp + INTERVAL 1 HOUR
"""


def last_by_key(messages):
    return Counter({m.key(): m.value().decode() for m in messages}.values())


def values(messages):
    return Counter(m.value().decode() for m in messages)


@pytest.mark.parametrize(
    ("transform", "mode", "effect", "expected"),
    [
        (counted, "update", last_by_key, [f"word-{n} {286 - 2 * (n > 5)}" for n in range(7)]),
        (first_of_each, "append", values, [f"word-{n}" for n in range(7)]),
        (JOINED, "append", values, [f"word-{n % 7} word-{n % 7}" for n in range(1000)]),
    ],
    ids=["aggregation", "deduplication", "stream-stream join"],
)
def test_stateful_transforms_have_their_effect_once(
    kafka, spark, words, tmp_path, transform, mode, effect, expected
):
    """Over several batches, one of which is committed and then run again by Spark."""
    topic, rows = words
    output = kafka.topic(1)
    pipeline = Pipeline(
        application=f"stateful-{output}",
        bootstrap_servers=kafka.bootstrap,
        source={"a": topic, "b": topic} if transform is JOINED else [topic],
        transform=transform,
        sink=output,
        checkpoint=str(tmp_path),
        mode=mode,
        watermark="1 hour",
        options={"maxOffsetsPerTrigger": 600},
    )
    pipeline.run(spark, availableNow=True)
    # As if the driver had died after the commit, and before Spark noted it.
    last = max((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    if transform is not JOINED:
        producer = kafka.producer()
        for number, row in enumerate(rows):
            producer.produce(topic, row, key=str(number))
        producer.flush()
    pipeline.run(spark, availableNow=True)
    assert effect(kafka.messages(output)) == Counter(expected)
