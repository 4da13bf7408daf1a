"""The commit of the format, without Spark: a checkpoint on disk, messages of tasks, a broker."""

import json
import uuid
from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from tests.spark.conftest import World

from semel import Broker
from semel.errors import FencedError, RefusedError, StaleCheckpointError, UsageError
from semel.spark.format.messages import TaskMessage, TaskOutput
from semel.spark.format.options import FormatOptions
from semel.spark.format.writers import BatchWriter, StreamWriter
from semel.spark.sink.encoding import RowEncoder, cluster_of
from semel.wire.compression import Compression, compress

SCHEMA = T.StructType().add("key", T.StringType()).add("value", T.StringType())


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield World(running.bootstrap_servers)


class Query:
    """What Spark would do: it plans batches, runs their tasks, and commits."""

    def __init__(self, kafka, directory):
        self.kafka, self.directory = kafka, directory
        self.topic = kafka.topic()
        self.id = str(uuid.uuid4())
        self.options = {
            "kafka.bootstrap.servers": kafka.bootstrap,
            "topic": self.topic,
            "application": f"app-{self.topic}",
            "checkpointLocation": str(directory),
        }
        self.staged = directory / "semel-staged" / self.id
        (directory / "offsets").mkdir(parents=True)
        (directory / "metadata").write_text(json.dumps({"id": self.id}))

    def plan(self, batch, planned_ms=1_700_000_000_000):
        metadata = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": planned_ms + batch})
        end = json.dumps({"logOffset": batch})
        (self.directory / "offsets" / str(batch)).write_text(f"v1\n{metadata}\n{end}")

    def task(self, values, partition=0, run="run", keys=True, **options):
        chosen = FormatOptions.of({**self.options, **options})
        output = TaskOutput(f"{self.staged}/{run}", chosen.carried_bytes)
        codec = Compression.named(chosen.sink.compression_type)

        def emit(body):
            output.add(body, compress(codec, body.records))
            encoder.give_back(body.slot)

        size = chosen.sink.batch_size
        encoder = RowEncoder(cluster_of(chosen.settings), chosen.topic, size, emit)
        columns = {"key": values if keys else [None] * len(values), "value": values}
        encoder.add(
            pa.RecordBatch.from_pydict(columns, pa.schema(dict.fromkeys(columns, "string")))
        )
        encoder.finish()
        output.close()
        return TaskMessage(
            partition, 7, self.id, run, len(values), tuple(output.batches), output.staged
        )

    def writer(self, at=lambda point, batch: None, **options):
        return StreamWriter(FormatOptions.of({**self.options, **options}), SCHEMA, at)

    def values(self):
        return self.kafka.values(self.topic)


@pytest.fixture
def query(broker, tmp_path):
    return Query(broker, tmp_path / "checkpoint")


def rows(first, count, width=0):
    return [f"row-{number:06d}".ljust(width, ".") for number in range(first, first + count)]


def test_every_batch_is_one_transaction_and_is_sent_once(query):
    for batch in range(3):
        query.plan(batch)
        messages = [query.task(rows(200 * batch + 100 * part, 100), part) for part in range(2)]
        query.writer().commit(messages, batch)
        query.writer().commit(messages, batch)
    assert query.values() == Counter(rows(0, 600))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_staged_batches_go_out_over_several_connections_and_in_order(query, codec):
    options = {"carryBytes": "1000", "kafka.batch.size": "70000", "kafka.compression.type": codec}
    query.plan(0)
    messages = [query.task(rows(6000 * n, 6000, 1000), n, **options) for n in range(3)]
    assert all(message.staged for message in messages)
    query.writer(**options).commit(messages, 0)
    found = query.kafka.messages(query.topic)
    assert Counter(message.value().decode() for message in found) == Counter(rows(0, 18_000, 1000))
    for partition in range(4):
        there = [m.value() for m in found if m.partition() == partition]
        assert there == sorted(there)
    assert list(query.staged.iterdir()) == []


def test_rows_without_a_key_are_spread(query):
    query.plan(0)
    messages = [query.task(rows(100 * part, 100), part, keys=False) for part in range(8)]
    query.writer().commit(messages, 0)
    found = query.kafka.messages(query.topic)
    assert Counter(message.value().decode() for message in found) == Counter(rows(0, 800))
    assert len({message.partition() for message in found}) == 4


@pytest.mark.parametrize("damage", ["lost", "cut short"])
def test_what_is_staged_and_damaged_is_refused_and_nothing_is_written(query, damage):
    query.plan(0)
    message = query.task(rows(0, 100, 1000), carryBytes="1000")
    (staged,) = (query.staged / "run").iterdir()
    if damage == "lost":
        staged.unlink()
    else:
        staged.write_bytes(staged.read_bytes()[:-1])
    with pytest.raises(RefusedError, match=r"is not there|bytes long, not"):
        query.writer().commit([message], 0)
    assert query.values() == Counter()
    query.writer().commit([query.task(rows(0, 100, 1000))], 0)
    assert query.values() == Counter(rows(0, 100, 1000))


def test_an_aborted_batch_leaves_no_file(query):
    query.plan(0)
    message = query.task(rows(0, 100, 1000), carryBytes="1000")
    query.writer().abort([message, None], 0)
    assert list(query.staged.iterdir()) == []


def test_what_a_killed_driver_has_staged_is_deleted_by_the_next_start(query):
    query.plan(0)
    query.task(rows(0, 100, 1000), run="killed", carryBytes="1000")
    message = query.task(rows(0, 100, 1000), run="next", carryBytes="1000")
    assert {path.name for path in query.staged.iterdir()} == {"killed", "next"}
    query.writer().commit([message], 0)
    assert list(query.staged.iterdir()) == []
    assert query.values() == Counter(rows(0, 100, 1000))


def test_a_missing_message_of_a_task_is_refused(query):
    query.plan(0)
    message = query.task(rows(0, 10))
    for messages in ([message, None], [message, message]):
        with pytest.raises(RefusedError, match="speak for a partition of their own"):
            query.writer().commit(messages, 0)
    assert query.values() == Counter()


def test_a_driver_that_was_overtaken_is_told_so_and_its_rows_are_not_seen(query, tmp_path):
    query.plan(0)
    message = query.task(rows(0, 10), run="first")

    def overtake(point, batch):
        if point == "before commit":
            query.writer().commit([query.task(rows(0, 10), run="second")], 0)

    with pytest.raises(FencedError, match="another driver has taken over"):
        query.writer(overtake).commit([message], 0)
    assert query.values() == Counter(rows(0, 10))


def test_a_batch_planned_anew_is_refused(query):
    query.plan(0)
    query.writer().commit([query.task(rows(0, 10))], 0)
    query.plan(0, planned_ms=1_800_000_000_000)
    with pytest.raises(StaleCheckpointError, match="planned anew"):
        query.writer().commit([query.task(rows(50, 10), run="restored")], 0)
    assert query.values() == Counter(rows(0, 10))


def test_a_query_that_comes_under_another_name_is_refused_with_both(query):
    query.plan(0)
    query.writer().commit([query.task(rows(0, 10))], 0)
    with pytest.raises(StaleCheckpointError, match=f"app-{query.topic}.*'other'"):
        query.writer(application="other").commit([query.task(rows(0, 10))], 0)
    assert query.values() == Counter(rows(0, 10))


def test_an_empty_batch_without_any_task_is_committed(query):
    query.plan(0)
    query.writer().commit([], 0)
    query.plan(1)
    query.writer().commit([query.task(rows(0, 5))], 1)
    assert query.values() == Counter(rows(0, 5))


def test_an_offset_log_of_an_unknown_format_is_refused(query):
    query.plan(0)
    path = query.directory / "offsets" / "0"
    path.write_text(path.read_text().replace("v1", "v2", 1))
    with pytest.raises(RefusedError, match="has format v2"):
        query.writer().commit([query.task(rows(0, 10))], 0)


def test_a_large_row_that_the_topic_does_not_take_is_the_reason_given(query):
    query.plan(0)
    message = query.task(["x" * 3_000_000])
    with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
        query.writer(attempts="1").commit([message], 0)
    assert query.values() == Counter()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"topics": "a"}, "unknown option of the sink: topics; did you mean topic"),
        ({"carryBytes": "much"}, "carryBytes is a number"),
        ({"beginAnew": "perhaps"}, "begin_anew"),
        ({"kafka.compression.type": "best"}, "compression_type"),
        ({"kafka.acks": "0"}, "acks"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        FormatOptions.of({"kafka.bootstrap.servers": "localhost:9092", **options})


def test_a_stream_needs_its_checkpoint_and_a_write_cannot_overwrite():
    options = FormatOptions.of({"kafka.bootstrap.servers": "localhost:9092", "topic": "t"})
    with pytest.raises(UsageError, match="needs the option checkpointLocation"):
        StreamWriter(options, SCHEMA)
    with pytest.raises(RefusedError, match="cannot be overwritten"):
        BatchWriter(options, SCHEMA, overwrite=True)
