"""The source on a real Spark and a real broker, alone and into the sink."""

import json
import shutil
from collections import Counter

import pytest
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import StreamingQueryException

from semel.spark import ExactlyOnceSink

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture
def topic(kafka):
    return kafka.topic(3)


@pytest.fixture
def fill(kafka, topic):
    """Committed rows, with an aborted transaction between them."""
    state = {"rows": [], "number": 0}

    def add(count: int, aborted: int = 0) -> list[str]:
        new = [f"row-{len(state['rows']) + i:05d}" for i in range(count)]
        state["rows"] += new
        state["number"] += 1
        name = f"fill-{topic}-{state['number']}"
        producer = kafka.producer(**{"transactional.id": name})
        producer.init_transactions()
        for rows, end in (
            ([f"aborted-{i}" for i in range(aborted)], producer.abort_transaction),
            (new, producer.commit_transaction),
        ):
            producer.begin_transaction()
            for row in rows:
                producer.produce(topic, row, key=row, headers=[("h", row.encode())])
            producer.flush()
            end()
        kafka.wait_until_stable(topic)
        return new

    return add


@pytest.fixture
def read(kafka, spark, topic):
    def options(reader, **given):
        reader = reader.format("semel").option("kafka.bootstrap.servers", kafka.bootstrap)
        if not {"subscribe", "assign", "subscribePattern"} & set(given):
            reader = reader.option("subscribe", topic)
        for name, value in given.items():
            reader = reader.option(name, value)
        return reader.load()

    return options


def values(frame):
    return Counter(row[0] for row in frame.selectExpr("cast(value AS string)").collect())


def test_committed_rows_are_read_and_aborted_ones_are_not(fill, read, spark, topic):
    rows = fill(100, aborted=50)
    frame = read(spark.read, includeHeaders="true")
    assert values(frame) == Counter(rows)
    one = frame.where("cast(key AS string) = 'row-00007'").collect()[0]
    assert (one.topic, one.timestampType, bytes(one.value)) == (topic, 0, b"row-00007")
    assert [(h.key, bytes(h.value)) for h in one.headers] == [("h", b"row-00007")]
    uncommitted = read(spark.read, isolationLevel="read_uncommitted")
    assert sum(values(uncommitted).values()) == 150


def test_offsets_by_number_by_time_and_split_partitions(fill, read, spark, topic):
    fill(30)
    offsets = Counter(read(spark.read, assign=f'{{"{topic}": [0]}}').select("offset").collect())
    assert set(offsets.values()) == {1}
    low = min(row.offset for row in offsets) + 2
    starting = f'{{"{topic}": {{"0": {low}}}}}'
    some = read(spark.read, assign=f'{{"{topic}": [0]}}', startingOffsets=starting)
    assert some.count() == len(offsets) - 2
    assert read(spark.read, startingTimestamp="99999999999999").count() == 0
    assert read(spark.read, startingTimestamp="1", minPartitions="9").count() == 30
    assert read(spark.read, startingTimestamp="1", maxRecordsPerPartition="5").count() == 30
    assert read(spark.read, subscribePattern=f"{topic[:-1]}.").count() >= 30


def test_a_read_ends_where_it_is_told_to(fill, read, spark, topic):
    fill(30)
    ending = f'{{"{topic}": {{"0": 2, "1": 0, "2": -2}}}}'
    assert read(spark.read, endingOffsets=ending).count() == 2
    assert read(spark.read, endingTimestamp="1").count() == 0
    times = f'{{"{topic}": {{"0": 1, "1": 99999999999999, "2": 1}}}}'
    parts = read(spark.read, endingOffsetsByTimestamp=times).select("partition").distinct()
    assert [row.partition for row in parts.collect()] == [1]
    with pytest.raises(PySparkException, match="earliest, latest, committed"):
        read(spark.read, endingOffsets="letest").count()


ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def test_values_are_decoded_by_a_schema_if_asked(kafka, read, spark):
    good, bad = kafka.topic(1), kafka.topic(1)
    producer = kafka.producer()
    for value in (b'{"id": 7, "more": true}', None):
        producer.produce(good, value)
    for value in (b'{"id": 8}', b"no json", b"\x0a"):
        producer.produce(bad, value)
    producer.flush()
    as_json = {"valueFormat": "json", "valueSchema": "id long"}
    fit = read(spark.read, subscribe=good, **as_json)
    assert fit.select("value.id").collect() == [(7,), (None,)]
    with pytest.raises(PySparkException, match=f"{bad}-0, offset 1: the value does not fit"):
        read(spark.read, subscribe=bad, **as_json).collect()
    lenient = read(spark.read, subscribe=bad, badValues="null", **as_json)
    assert lenient.select("value.id").collect() == [(8,), (None,), (None,)]
    as_avro = {"valueFormat": "avro", "valueSchema": json.dumps(ORDER), "badValues": "null"}
    avro = read(spark.read, subscribe=bad, **as_avro)
    assert avro.select("value.id").collect() == [(None,), (None,), (5,)]


class Pipe:
    """From the topic to another one, exactly once."""

    def __init__(self, kafka, spark, read, directory):
        self.kafka, self.spark, self.read = kafka, spark, read
        self.output = kafka.topic(2)
        self.application = f"pipe-{self.output}"
        self.checkpoint = directory / "checkpoint"

    def run(self, **options):
        rows = self.read(self.spark.readStream, **options).selectExpr("key", "value")
        sink = ExactlyOnceSink(self.kafka.bootstrap, self.output, application=self.application)
        writer = rows.writeStream.foreachBatch(sink).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        query.awaitTermination()
        return sink, query


@pytest.fixture
def pipe(kafka, spark, read, tmp_path):
    return Pipe(kafka, spark, read, tmp_path)


def test_a_limited_stream_takes_several_batches_and_commits_its_offsets(fill, pipe, kafka):
    rows = fill(100, aborted=20)
    more = {"maxRecordsPerTrigger": "60", "maxBytesPerTrigger": "1000000000"}
    sink, _ = pipe.run(maxOffsetsPerTrigger="40", **more)
    assert sink.committed.batch >= 2
    rows += fill(50)
    sink, _ = pipe.run()
    assert kafka.values(pipe.output) == Counter(rows)
    committed = kafka.committed_offsets(pipe.application)
    assert committed == {
        (t, int(p)): offset
        for t, parts in sink.committed.end[0]["topics"].items()
        for p, offset in parts.items()
    }


def test_bytes_per_trigger_limit_a_batch(fill, pipe, kafka):
    rows = fill(200)
    sink, _ = pipe.run(maxBytesPerTrigger="2000", maxRecordsPerTrigger="100000")
    assert sink.committed.batch >= 2
    assert kafka.values(pipe.output) == Counter(rows)


def test_a_stateless_pipeline_survives_the_loss_of_its_checkpoint(fill, pipe, kafka):
    rows = fill(60)
    options = {
        "startingOffsets": "committed",
        "application": pipe.application,
        "committedFallback": "earliest",
    }
    pipe.run(**options)
    shutil.rmtree(pipe.checkpoint)
    rows += fill(40)
    pipe.run(**options)
    assert kafka.values(pipe.output) == Counter(rows)
    # A batch read from there sees what is not yet done.
    new = fill(5)
    assert values(pipe.read(pipe.spark.read, **options)) == Counter(new)


def test_starting_from_a_ledger_without_an_entry_is_refused(fill, pipe):
    fill(1)
    with pytest.raises(StreamingQueryException, match="no offsets of"):
        pipe.run(startingOffsets="committed", application="nobody")


def test_new_partitions_are_picked_up_from_their_beginning(fill, pipe, kafka, topic):
    rows = fill(20)
    pipe.run()
    kafka.grow(topic, 5)
    rows += fill(30)
    pipe.run()
    assert kafka.values(pipe.output) == Counter(rows)


def test_lost_offsets_are_an_error_or_a_warning_as_chosen(fill, read, spark, kafka, topic):
    fill(30)
    kafka.delete_records(topic, 0, 3)
    starting = f'{{"{topic}": {{"0": 0}}}}'
    only = {"assign": f'{{"{topic}": [0]}}', "startingOffsets": starting}
    with pytest.raises(PySparkException, match="is gone"):
        read(spark.read, **only).count()
    left = read(spark.read, **only, failOnDataLoss="false").agg({"offset": "min"}).collect()
    assert left[0][0] == 3
