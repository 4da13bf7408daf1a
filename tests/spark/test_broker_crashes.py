"""The broker is killed and comes back in the middle of a batch."""

from collections import Counter

import pytest

from semel.spark import ExactlyOnceSink, start

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize(
    "place",
    [
        ["grant", 0],
        pytest.param(["before ledger", 1], marks=pytest.mark.soak),
        ["before commit", 1],
        pytest.param(["after commit", 1], marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_a_broker_killed_and_restarted_is_ridden_out(mortal, world, lines, spark, tmp_path, place):
    kafka = world(mortal.bootstrap)
    topic = kafka.topic()
    for _ in range(3):
        lines.add(500)
    killed = []

    def kill(point, batch):
        if [point, batch] == place and not killed:
            killed.append(place)
            mortal.kill()
            mortal.start()

    sink = ExactlyOnceSink(mortal.bootstrap, topic, application=f"app-{topic}", batch_size=1)
    sink.committer.at = kill
    where = str(tmp_path / "checkpoint")
    start(lines.stream(spark), sink, where, availableNow=True).awaitTermination()
    assert killed
    assert kafka.values(topic) == Counter(lines.rows)
