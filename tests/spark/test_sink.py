"""The sink on a real Spark and a real broker: what arrives, and what is refused."""

import json
import shutil
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from pyspark.errors import PythonException
from pyspark.errors.exceptions.captured import StreamingQueryException

from semel.errors import BatchFailedError, RefusedError
from semel.spark import write
from semel.spark.query_batch import QueryBatch
from semel.spark.sink.committer import (
    Committer,
    refuse_connect,
    refuse_speculation,
)
from semel.spark.sink.streams import refuse_modes

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]


def test_every_column_arrives_as_spark_s_own_sink_would_write_it(job):
    job.lines.add(20)
    # A recent one: the broker deletes old segments by the time of their records.
    moment = datetime.now(UTC).replace(microsecond=678000)
    rows = job.lines.stream(job.spark).selectExpr(
        "CASE WHEN value < 'row-000010' THEN key END AS key",
        "CASE WHEN value != 'row-000003' THEN encode(value, 'utf-8') END AS value",
        "array(named_struct('key', 'h', 'value', encode(value, 'utf-8'))) AS headers",
        "CASE WHEN value = 'row-000015' THEN 2 END AS partition",
        f"TIMESTAMP '{moment.isoformat()}' AS timestamp",
    )
    job.run(rows, compression_type="zstd")
    messages = job.kafka.messages(job.topic)
    assert len(messages) == 20
    by_header = {dict(m.headers())["h"].decode(): m for m in messages}
    assert by_header["row-000003"].value() is None
    assert by_header["row-000003"].key() == b"row-000003"
    assert by_header["row-000012"].key() is None
    assert by_header["row-000015"].partition() == 2
    assert {m.timestamp()[1] for m in messages} == {round(moment.timestamp() * 1000)}


def test_keyed_rows_land_where_kafka_s_own_partitioner_puts_them(job):
    rows = job.lines.add(50)
    other = job.kafka.topic()
    producer = job.kafka.producer(partitioner="murmur2_random")
    for row in rows:
        producer.produce(other, row, key=row)
    producer.flush()
    job.run()
    place = {m.value(): m.partition() for m in job.kafka.messages(job.topic)}
    assert place == {m.value(): m.partition() for m in job.kafka.messages(other)}


def test_many_topics_many_tasks_and_rows_without_keys(job):
    job.lines.add(300)
    topics = [job.kafka.topic(3), job.kafka.topic(1)]
    choice = f"CASE WHEN value < 'row-000100' THEN '{topics[0]}' ELSE '{topics[1]}' END AS topic"
    rows = job.lines.stream(job.spark).repartition(7).selectExpr("value", choice)
    job.run(rows, topic=None)
    assert job.kafka.values(*topics) == Counter(job.lines.rows)
    assert sum(job.kafka.values(topics[0]).values()) == 100


def test_a_batch_without_rows_is_committed_too(job):
    job.lines.add(10)
    sink = job.run(job.lines.stream(job.spark).where("value = 'nothing'"))
    assert sink.rows == 0
    assert sink.committed.batch == 0
    assert job.kafka.values(job.topic) == Counter()


def test_a_forgotten_commit_entry_does_not_repeat_the_batch(job):
    job.lines.add(100)
    job.run()
    job.forget_last_commit()
    job.lines.add(50)
    assert job.run().rows == 50
    job.assert_exactly_once()


@pytest.mark.parametrize("source", ["rate-micro-batch", "semel"])
def test_a_batch_of_any_source_that_spark_runs_again_keeps_its_time(job, source):
    """As of files, in the test above, and of a stateful query, in one below."""
    producer, origin = job.kafka.producer(), job.kafka.topic(1)
    for number in range(10):
        producer.produce(origin, str(number))
    producer.flush()
    options = {
        "rate-micro-batch": {"rowsPerBatch": 10, "numPartitions": 1},
        "semel": {"kafka.bootstrap.servers": job.kafka.bootstrap, "subscribe": origin},
    }[source]
    rows = job.spark.readStream.format(source).options(**options).load()
    rows = rows.selectExpr("cast(value AS string) AS value")
    assert job.run(rows).rows == 10
    job.forget_last_commit()
    job.run(rows)
    assert set(job.kafka.values(job.topic).values()) == {1}


def test_an_old_checkpoint_is_refused_and_nothing_is_written(job, tmp_path):
    job.lines.add(30)
    job.run()
    shutil.copytree(job.checkpoint, tmp_path / "old")
    for _ in range(2):
        job.lines.add(30)
        job.run()
    with pytest.raises(StreamingQueryException, match="neither that batch nor the next"):
        job.run(checkpoint=tmp_path / "old")
    job.assert_exactly_once()


def test_a_restored_checkpoint_with_other_files_under_the_same_counters_is_refused(job, tmp_path):
    """The offset of a file source is only a counter: nothing else tells the two batches apart."""
    job.lines.add(30)
    job.run()
    shutil.copytree(job.checkpoint, tmp_path / "old")
    job.lines.add(50)
    job.run()
    committed = Counter(job.lines.rows)
    (job.lines.directory / "0001.txt").unlink()
    job.lines.add(50)
    with pytest.raises(StreamingQueryException, match="planned anew"):
        job.run(checkpoint=tmp_path / "old")
    assert job.kafka.values(job.topic) == committed


def test_a_new_checkpoint_does_not_double_the_output_unless_asked(job, tmp_path, caplog):
    job.lines.add(30)
    job.run()
    with pytest.raises(StreamingQueryException, match="would write rows a second time"):
        job.run(checkpoint=tmp_path / "new")
    job.assert_exactly_once()
    assert job.run(checkpoint=tmp_path / "newer", begin_anew=True).rows == 30
    assert "new lineage" in caplog.text
    assert set(job.kafka.values(job.topic).values()) == {2}


def test_a_failing_query_leaves_nothing_visible_and_goes_on_when_repaired(job, tmp_path):
    job.lines.add(100)
    broken = tmp_path / "broken"
    broken.touch()

    def maybe(batches):
        for batch in batches:
            yield batch
            if broken.exists():
                raise RuntimeError("broken on purpose")

    rows = job.lines.stream(job.spark).mapInArrow(maybe, "key string, value string")
    with pytest.raises(StreamingQueryException, match="broken on purpose"):
        job.run(rows)
    assert job.kafka.values(job.topic) == Counter()
    broken.unlink()
    job.run(rows)
    job.assert_exactly_once()


def test_a_batch_that_failed_before_anything_was_written_runs_again(job, caplog):
    """Of a file that is gone for a moment: Spark's own trouble, not the query's."""
    job.lines.add(100)
    path, hidden = job.lines.directory / "0000.txt", job.checkpoint.with_name("hidden")
    comings = []

    def hide_and_bring_back(point, batch):
        if point == "before job":
            comings.append(batch)
            if len(comings) == 1:
                path.rename(hidden)
            else:
                hidden.rename(path)

    sink = job.run(at=hide_and_bring_back)
    assert comings == [0, 0]
    assert sink.committer.retries == 1
    assert "0000.txt" in caplog.text
    job.assert_exactly_once()


def test_a_transaction_that_times_out_is_run_again(job, caplog):
    job.lines.add(100)
    waited = []

    def wait_for_the_timeout(point, batch):
        if point == "before commit" and not waited:
            waited.append(threading.Event().wait(3))

    job.run(transaction_timeout_ms=1000, at=wait_for_the_timeout)
    assert "aborted" in caplog.text
    job.assert_exactly_once()


def test_two_drivers_of_one_application_fence_each_other_with_a_clear_word(job, tmp_path):
    job.lines.add(10)
    first, second = [], []

    def overtake(point, batch):
        if point == "before commit" and not second:
            second.append(job.run(checkpoint=tmp_path / "other"))

    with pytest.raises(StreamingQueryException, match="another driver has taken over"):
        first.append(job.run(at=overtake))
    job.assert_exactly_once()


def test_another_application_s_open_transaction_over_the_ledger_is_waited_for(job, caplog):
    job.lines.add(40)
    job.run()
    job.forget_last_commit()
    stranger = job.kafka.producer(**{"transactional.id": f"stranger-{job.topic}"})
    stranger.init_transactions()
    stranger.begin_transaction()
    stranger.produce("semel-ledger", b"{}", key="somebody else")
    stranger.flush()
    ended = threading.Timer(3, stranger.commit_transaction)
    ended.start()
    assert job.run().rows == 0
    ended.join()
    assert "waiting for another application" in caplog.text
    job.assert_exactly_once()


STATE = "spark.sql.streaming.stateStore."
PROVIDERS = "org.apache.spark.sql.execution.streaming.state."
HDFS = {f"{STATE}providerClass": f"{PROVIDERS}HDFSBackedStateStoreProvider"}
ROCKSDB = {f"{STATE}providerClass": f"{PROVIDERS}RocksDBStateStoreProvider"}
STORES = {
    "default": {},
    "files": HDFS,
    "rocksdb": ROCKSDB,
    # State is named by a unique id in the commit log, which a skipped batch must write, too.
    "rocksdb, format 2": {**ROCKSDB, f"{STATE}checkpointFormatVersion": "2"},
}


@pytest.fixture
def state_store(request, spark):
    settings = STORES[request.param]
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.parametrize(
    "state_store",
    ["default", *(pytest.param(name, marks=pytest.mark.soak) for name in list(STORES)[1:])],
    indirect=True,
)
def test_a_stateful_query_goes_on_across_a_skipped_batch(job, state_store):
    def counts():
        rows = job.lines.stream(job.spark)
        totals = rows.selectExpr("substr(value, -1) AS digit").groupBy("digit").count()
        return totals.selectExpr("digit AS key", "cast(count AS string) AS value")

    for _ in range(2):
        job.lines.add(100)
        job.run(counts(), mode="update")
        job.forget_last_commit()
    job.lines.add(100)
    job.run(counts(), mode="update")
    assert job.kafka.values(job.topic) == Counter({"10": 10, "20": 10, "30": 10})


@pytest.mark.soak
def test_ten_batches_across_the_end_of_a_producer_id(job):
    """The epoch is a short: the coordinator hands out another producer id on the way."""
    ids = []

    def wear_out(point, batch):
        lender = sink.committer._lender
        while point == "after fence" and lender.epoch < 32_764:
            lender.recover()
        ids.append(lender.producer_id)

    for _ in range(10):
        job.lines.add(20)
    sink = job.sink(at=wear_out)
    job.run(sink=sink)
    assert len(set(ids)) > 1
    job.assert_exactly_once()


def test_a_group_with_live_members_is_refused_before_anything_is_written(job):
    job.lines.add(10)
    group = f"group-{job.topic}"
    with (
        job.kafka.member(job.topic, group, "classic"),
        pytest.raises(StreamingQueryException, match="has 1 live members"),
    ):
        job.run(group_id=group)
    assert job.kafka.values(job.topic) == Counter()


@pytest.mark.parametrize("partitions", [40, pytest.param(2000, marks=pytest.mark.soak)])
def test_one_task_may_write_to_many_partitions(job, partitions):
    job.lines.add(5000)
    topic = job.kafka.topic(partitions)
    job.run(topic=topic)
    messages = job.kafka.messages(topic)
    assert Counter(m.value().decode() for m in messages) == Counter(job.lines.rows)
    assert len({m.partition() for m in messages}) > partitions / 2


def test_source_offsets_of_other_sources_are_not_committed_anywhere(job):
    job.lines.add(5)
    job.run(group_id=f"group-{job.topic}")
    assert job.kafka.values(job.topic) == Counter(job.lines.rows)


def test_a_timeout_that_the_broker_does_not_allow_is_refused_with_both_numbers(job):
    job.lines.add(1)
    with pytest.raises(
        StreamingQueryException, match="86400000 ms here, but the broker allows 900000"
    ):
        job.run(transaction_timeout_ms=86_400_000)


def test_speculation_and_use_outside_a_query_are_refused(job, spark):
    rows = spark.range(1).selectExpr("cast(id AS string) AS value")
    with pytest.raises(RefusedError, match="inside foreachBatch"):
        job.sink()(rows, 0)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (["key"], "needs a column `value`"),
        (["cast(1 AS int) AS value"], "must be string or binary, not int"),
    ],
)
def test_columns_that_do_not_fit_are_named(job, columns, sentence):
    job.lines.add(1)
    with pytest.raises(StreamingQueryException, match=sentence):
        job.run(job.lines.stream(job.spark).selectExpr(*columns))


def test_a_dataframe_is_written_whole_and_once_under_its_name(kafka, spark):
    topic = kafka.topic()
    rows = spark.range(500, numPartitions=3).selectExpr("cast(id AS string) AS value")
    assert write(rows, kafka.bootstrap, topic, name=f"load-{topic}") == 500
    assert write(rows, kafka.bootstrap, topic, name=f"load-{topic}") == 0
    assert kafka.values(topic) == Counter(str(i) for i in range(500))


def test_nulls_are_no_headers_now_and_any_partition(kafka, spark):
    topic = kafka.topic()
    earlier = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    rows = spark.range(6, numPartitions=1).selectExpr(
        "cast(id AS string) AS value",
        "NULL AS key",
        "CASE WHEN id > 1 THEN array(named_struct('key', 'h', 'value',"
        " CASE WHEN id > 3 THEN X'07' END)) END AS headers",
        f"CASE WHEN id > 2 THEN TIMESTAMP '{earlier.isoformat()}' END AS timestamp",
        "cast(NULL AS int) AS partition",
    )
    assert write(rows, kafka.bootstrap, topic, name=f"nulls-{topic}") == 6
    found = {int(m.value()): m for m in kafka.messages(topic)}
    headers = [found[number].headers() for number in range(6)]
    assert headers == [None] * 2 + [[("h", None)]] * 2 + [[("h", b"\7")]] * 2
    times = [found[number].timestamp()[1] for number in range(6)]
    chosen = round(earlier.timestamp() * 1000)
    assert [when == chosen for when in times] == [False] * 3 + [True] * 3
    assert min(times[:3]) > chosen


def test_a_row_without_a_topic_fails_the_whole_with_that_reason(kafka, spark):
    """It comes late, when other rows have been written."""
    topic = kafka.topic(1)
    named = f"CASE WHEN id < 15000 THEN '{topic}' END AS topic"
    rows = spark.range(20_000, numPartitions=1).selectExpr("repeat(id, 20) AS value", named)
    with pytest.raises(BatchFailedError, match="a row without a topic"):
        write(rows, kafka.bootstrap, name=f"odd-{topic}", batch_size=1, attempts=1)
    assert kafka.values(topic) == Counter()


def test_a_row_from_before_1970_fails_the_whole_with_that_reason(kafka, spark):
    topic = kafka.topic(1)
    moment = "timestamp_millis(id - 1) AS timestamp"
    rows = spark.range(2, numPartitions=1).selectExpr("cast(id AS string) AS value", moment)
    with pytest.raises(PythonException, match="a timestamp before 1970"):
        write(rows, kafka.bootstrap, topic, name=f"old-{topic}", attempts=1)
    assert kafka.values(topic) == Counter()


def test_a_row_larger_than_the_topic_accepts_is_the_reason_given(kafka, spark):
    topic = kafka.topic(1)
    rows = spark.range(1).selectExpr("repeat('x', 3000000) AS value")
    with pytest.raises(BatchFailedError, match="MESSAGE_TOO_LARGE"):
        write(rows, kafka.bootstrap, topic, name=f"large-{topic}", attempts=1)


def test_a_dataframe_that_fails_half_way_is_not_seen_at_all(kafka, spark, tmp_path):
    topic = kafka.topic()

    def fail_late(batches):
        yield from batches
        raise RuntimeError("half way")

    rows = spark.range(5000, numPartitions=1).selectExpr("cast(id AS string) AS value")
    with pytest.raises(Exception, match=r"half way|failed 4 times"):
        write(rows.mapInArrow(fail_late, "value string"), kafka.bootstrap, topic,
              name=f"load-{topic}", batch_size=1)  # fmt: skip
    assert kafka.values(topic) == Counter()
    assert write(rows, kafka.bootstrap, topic, name=f"load-{topic}") == 5000


def test_a_topic_that_does_not_exist_is_named_before_anything_is_written(job):
    job.lines.add(1)
    with pytest.raises(StreamingQueryException, match="topic 'no such topic' cannot be written to"):
        job.run(topic="no such topic")


def test_a_commit_that_lands_during_the_takeover_is_seen(job):
    """Fence first, then look: the former driver may commit until the very moment of the fence."""
    job.lines.add(50)
    former = []

    def commit_as_the_former_driver(point, batch):
        if point == "before fence" and not former:
            query_id = json.loads((job.checkpoint / "metadata").read_text())["id"]
            former.append(Committer(job.kafka.bootstrap, job.topic, job.application))
            rows = job.spark.read.text(str(job.lines.directory)).selectExpr("value AS key", "value")
            former[0].take_over(rows, 0)
            former[0].commit(rows, QueryBatch(query_id, 0, (None,), ({"logOffset": 0},)))

    assert job.run(at=commit_as_the_former_driver).rows == 0
    job.assert_exactly_once()


def test_what_cannot_be_exactly_once_is_refused_in_a_sentence():
    with pytest.raises(RefusedError, match="Spark Connect"):
        refuse_connect(object())
    settings = SimpleNamespace(get=lambda name, default: "true")
    context = SimpleNamespace(getConf=lambda: settings)
    frame = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))
    with pytest.raises(RefusedError, match="speculation"):
        refuse_speculation(frame)
    for trigger in ("ContinuousTrigger(1000)", "RealTimeTrigger(300000)"):
        words = SimpleNamespace(toString=lambda trigger=trigger: trigger)
        with pytest.raises(RefusedError, match="triggers have no micro-batches"):
            refuse_modes(SimpleNamespace(trigger=lambda words=words: words))
