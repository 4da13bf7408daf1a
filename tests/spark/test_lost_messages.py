"""The line to the broker breaks at every step of a transaction; late copies arrive after it."""

from collections import Counter

import pytest
from tests.support.line import ANSWER, HELD, REQUEST

from semel.client.errors import error_for
from semel.spark import start
from semel.wire.errors import ErrorCode

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]

PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS = 0, 22, 24, 25
END_TXN, TXN_OFFSET_COMMIT = 26, 28
CONVERSATION = {
    2: (INIT_PRODUCER_ID, PRODUCE, TXN_OFFSET_COMMIT, END_TXN),
    1: (INIT_PRODUCER_ID, ADD_PARTITIONS, PRODUCE, ADD_OFFSETS, TXN_OFFSET_COMMIT, END_TXN),
}


def errors_of(answer):
    return {
        ErrorCode.of(entry.error_code)
        for topic in answer.responses
        for entry in topic.partition_responses
    }


@pytest.mark.parametrize("protocol", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_every_request_and_every_answer_may_be_lost(
    line, world, spark, new_job, tmp_path, protocol
):
    """The coordinator, the group's and the leaders are lost in turn, heard or unheard."""
    kafka = world(line.bootstrap)
    job = new_job(kafka)
    source = kafka.topic(2)
    producer = kafka.producer()
    rows = [f"row-{number:04d}" for number in range(600)]
    for row in rows:
        producer.produce(source, row, key=row)
    producer.flush()
    stream = spark.readStream.format("semel").option("kafka.bootstrap.servers", line.bootstrap)
    stream = stream.option("subscribe", source).option("startingOffsets", "earliest")
    sink = job.sink(group_id=f"group-{source}")
    sink.committer._lender.protocol = protocol
    for api_key in CONVERSATION[protocol]:
        line.lose(api_key, REQUEST)
        line.lose(api_key, ANSWER)
    frame = stream.option("maxOffsetsPerTrigger", 200).load()
    start(frame, sink, str(tmp_path / "checkpoint"), availableNow=True).awaitTermination()
    assert line.pending == []
    assert kafka.values(job.topic) == Counter(rows)
    assert sum(kafka.committed_offsets(f"group-{source}").values()) == 600


@pytest.mark.parametrize("protocol", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_a_copy_of_a_request_that_arrives_after_the_commit_changes_nothing(
    line, world, new_job, protocol
):
    job = new_job(world(line.bootstrap))
    job.lines.add(100)
    sink = job.sink()
    sink.committer._lender.protocol = protocol
    line.lose(PRODUCE, HELD)
    job.run(sink=sink)
    job.assert_exactly_once()
    errors = errors_of(line.deliver())
    if protocol == 2:
        assert errors == {ErrorCode.INVALID_PRODUCER_EPOCH}
    # Under version 1 it may be recognised as a repetition instead; visible it is in no case.
    job.assert_exactly_once()
    job.lines.add(100)
    job.run()
    job.assert_exactly_once()


@pytest.mark.parametrize("protocol", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_a_zombie_s_request_that_arrives_in_the_next_attempt_is_refused(
    line, world, new_job, protocol
):
    job = new_job(world(line.bootstrap))
    job.lines.add(100)
    late = []

    def fail_once_then_deliver(point, batch):
        if point != "before commit":
            return
        if not late:
            late.append("held")
            raise error_for(ErrorCode.INVALID_TXN_STATE, "this attempt fails on purpose")
        # The next attempt's rows are written, its transaction is open.
        late.append(errors_of(line.deliver()))

    sink = job.sink(at=fail_once_then_deliver)
    sink.committer._lender.protocol = protocol
    line.lose(PRODUCE, HELD)
    job.run(sink=sink)
    assert late == ["held", {ErrorCode.INVALID_PRODUCER_EPOCH}]
    assert sink.committer.retries == 1
    job.assert_exactly_once()
