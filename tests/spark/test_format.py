"""The sink as a format, on a real Spark and a real broker: one transaction for each micro-batch."""

import shutil
from collections import Counter

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import StreamingQueryException

from semel.spark import write

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]


class FormatJob:
    """A query from files into a topic, as a user of Spark writes it."""

    def __init__(self, job):
        self.job = job
        self.kafka, self.lines, self.topic = job.kafka, job.lines, job.topic
        self.application, self.checkpoint = job.application, job.checkpoint

    def run(self, rows=None, checkpoint=None, mode="append", **options):
        rows = self.lines.stream(self.job.spark) if rows is None else rows
        chosen = {
            "kafka.bootstrap.servers": self.kafka.bootstrap,
            "topic": self.topic,
            "application": self.application,
            "checkpointLocation": str(checkpoint or self.checkpoint),
            **options,
        }
        chosen = {name: value for name, value in chosen.items() if value is not None}
        writer = rows.writeStream.format("semel").options(**chosen).outputMode(mode)
        writer.trigger(availableNow=True).start().awaitTermination()

    def staged(self):
        return [path for path in self.checkpoint.rglob("semel-staged/**/*") if path.is_file()]


@pytest.fixture
def stream(job):
    return FormatJob(job)


def test_a_stream_is_written_by_the_name_of_the_format(stream):
    for _ in range(2):
        stream.lines.add(100)
    stream.run()
    stream.job.assert_exactly_once()
    stream.job.forget_last_commit()
    stream.lines.add(50)
    stream.run()
    stream.job.assert_exactly_once()


def test_large_batches_are_staged_and_cleaned_up(stream):
    stream.lines.add(500, width=2000)
    rows = stream.lines.stream(stream.job.spark).repartition(3)
    stream.run(rows, carryBytes=10_000, **{"kafka.batch.size": 20_000})
    stream.job.assert_exactly_once()
    assert stream.checkpoint.joinpath("semel-staged").is_dir()
    assert stream.staged() == []


def test_rows_are_placed_as_by_the_other_sink(stream):
    stream.lines.add(300)
    stream.run(**{"kafka.compression.type": "zstd"})
    other = stream.kafka.topic()
    stream.job.run(checkpoint=stream.checkpoint.with_name("other"), topic=other, application=other)

    def places(topic):
        return {m.value(): (m.key(), m.partition()) for m in stream.kafka.messages(topic)}

    assert places(stream.topic) == places(other)


def test_topics_by_row_and_rows_without_keys(stream):
    stream.lines.add(300)
    topics = [stream.kafka.topic(3), stream.kafka.topic(1)]
    choice = f"CASE WHEN value < 'row-000100' THEN '{topics[0]}' ELSE '{topics[1]}' END AS topic"
    rows = stream.lines.stream(stream.job.spark).repartition(5).selectExpr("value", choice)
    stream.run(rows, topic=None)
    assert stream.kafka.values(*topics) == Counter(stream.lines.rows)
    assert sum(stream.kafka.values(topics[0]).values()) == 100


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (["key"], {}, "needs a column `value`"),
        (["cast(1 AS int) AS value"], {}, "must be string or binary, not int"),
        (["value", "'x' AS partition"], {}, "column `partition` must be int, not string"),
        (["value"], {"topic": None}, "give the sink a topic"),
        (["value"], {"chekpointLocation": "x"}, "did you mean checkpointLocation"),
        (["value"], {"kafka.bootstrap.servers": None}, "needs the option kafka.bootstrap.servers"),
    ],
)
def test_what_does_not_fit_is_named_before_the_first_batch(stream, columns, options, sentence):
    stream.lines.add(1)
    with pytest.raises(PySparkException, match=sentence):
        stream.run(stream.lines.stream(stream.job.spark).selectExpr(*columns), **options)
    assert stream.kafka.values(stream.topic) == Counter()


def test_a_restored_checkpoint_and_a_new_one_are_refused(stream, tmp_path):
    stream.lines.add(30)
    stream.run()
    shutil.copytree(stream.checkpoint, tmp_path / "old")
    stream.lines.add(50)
    stream.run()
    committed = Counter(stream.lines.rows)
    (stream.lines.directory / "0001.txt").unlink()
    stream.lines.add(50)
    with pytest.raises(StreamingQueryException, match="planned anew"):
        stream.run(checkpoint=tmp_path / "old")
    with pytest.raises(StreamingQueryException, match="a second time"):
        stream.run(checkpoint=tmp_path / "new")
    assert stream.kafka.values(stream.topic) == committed


def test_an_application_moves_between_the_two_sinks_and_goes_on_exactly_once(stream):
    stream.lines.add(40)
    stream.job.run()
    stream.job.forget_last_commit()
    stream.lines.add(40)
    stream.run()
    stream.job.forget_last_commit()
    stream.lines.add(40)
    stream.job.run()
    stream.job.assert_exactly_once()


def test_an_application_that_moves_under_another_name_is_refused_with_both(stream):
    stream.lines.add(40)
    stream.job.run()
    stream.job.forget_last_commit()
    with pytest.raises(StreamingQueryException, match=f"as application '{stream.application}'"):
        stream.run(application="another")
    with pytest.raises(StreamingQueryException, match=f"application={stream.application}"):
        stream.run(application=None)
    stream.job.assert_exactly_once()


def test_a_stateful_query_goes_on_across_a_skipped_batch(stream):
    def counts():
        rows = stream.lines.stream(stream.job.spark)
        totals = rows.selectExpr("substr(value, -1) AS digit").groupBy("digit").count()
        return totals.selectExpr("digit AS key", "cast(count AS string) AS value")

    for _ in range(2):
        stream.lines.add(100)
        stream.run(counts(), mode="complete")
        stream.job.forget_last_commit()
    assert stream.kafka.values(stream.topic) == Counter({"10": 10, "20": 10})


def test_a_failing_task_leaves_nothing_behind_and_the_query_goes_on_when_repaired(stream, tmp_path):
    stream.lines.add(500, width=2000)
    broken = tmp_path / "broken"
    broken.touch()

    def maybe(batches):
        for batch in batches:
            yield batch
            if broken.exists():
                raise RuntimeError("broken on purpose")

    rows = stream.lines.stream(stream.job.spark).mapInArrow(maybe, "key string, value string")
    with pytest.raises(StreamingQueryException, match="broken on purpose"):
        stream.run(rows, carryBytes=1000, **{"kafka.batch.size": 20_000})
    assert stream.kafka.messages(stream.topic, isolation="read_uncommitted") == []
    assert stream.staged() == []
    broken.unlink()
    stream.run(rows)
    stream.job.assert_exactly_once()


def test_a_dataframe_is_written_whole_and_once_under_its_name(kafka, spark):
    topic = kafka.topic()
    rows = spark.range(500, numPartitions=3).selectExpr("cast(id AS string) AS value")
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic}
    for _ in range(2):
        rows.write.format("semel").options(**options, name=topic).mode("append").save()
    assert kafka.values(topic) == Counter(str(i) for i in range(500))
    # The name is the same for `write`.
    assert write(rows, kafka.bootstrap, topic, name=topic) == 0
    rows.write.format("semel").options(**options).mode("append").save()
    assert set(kafka.values(topic).values()) == {2}
    with pytest.raises(PySparkException, match="cannot be overwritten"):
        rows.write.format("semel").options(**options).mode("overwrite").save()
