"""Tasks that fail, die, dawdle or come twice, in the very process that writes to Kafka."""

import os
import signal

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.fixture
def feed():
    """Put a generator between Spark and the writer, inside the writer's own process."""

    def install(sink, through):
        make = sink.committer._writer

        def make_writer(*lent_and_address):
            writer = make(*lent_and_address)

            # Nested, so that it is pickled by value: workers cannot import tests.
            def run(batches):
                yield from writer(through(batches))

            return run

        sink.committer._writer = make_writer
        return sink

    return install


@pytest.mark.parametrize("deed", ["fails", "is killed"])
def test_a_task_that_ends_after_it_has_written_makes_the_whole_batch_run_again(
    job, feed, tmp_path, deed
):
    job.lines.add(600, width=4000)
    granted, struck, kill = tmp_path / "granted", tmp_path / "struck", deed == "is killed"

    def strike(batches):
        import threading

        for number, batch in enumerate(batches):
            yield batch
            if number == 0 and not struck.exists():
                while not granted.exists():
                    threading.Event().wait(0.02)
                struck.touch()
                if kill:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("a task fails on purpose")

    def note_the_grant(point, batch):
        if point == "grant":
            granted.touch()

    sink = feed(job.sink(batch_size=1, at=note_the_grant), strike)
    job.run(sink=sink)
    assert struck.exists()
    assert sink.committer.retries == 1
    job.assert_exactly_once()


def test_a_task_that_ends_before_it_has_written_is_simply_run_again(job, feed, tmp_path):
    job.lines.add(200)
    struck = tmp_path / "struck"

    def strike(batches):
        if not struck.exists():
            struck.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    sink = feed(job.sink(), strike)
    job.run(sink=sink)
    assert struck.exists()
    assert sink.committer.retries == 0
    job.assert_exactly_once()


def test_a_slow_task_is_waited_for(job, feed, tmp_path):
    """It stops between its rows while the other task writes to the same partitions."""
    job.lines.add(600, width=4000)
    first, other_done = tmp_path / "first", tmp_path / "other done"

    def dawdle(batches):
        import threading

        slow = not first.exists()
        first.touch()
        for batch in batches:
            half = batch.num_rows // 2
            yield batch.slice(0, half)
            while slow and not other_done.exists():
                threading.Event().wait(0.02)
            yield batch.slice(half)
        if not slow:
            other_done.touch()

    sink = feed(job.sink(batch_size=1), dawdle)
    job.run(job.lines.stream(job.spark).repartition(2), sink=sink)
    assert other_done.exists()
    assert sink.committer.retries == 0
    job.assert_exactly_once()
