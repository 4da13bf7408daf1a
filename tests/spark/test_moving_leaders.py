"""Three brokers: leaders move inside a batch, and the coordinator is lost to another node."""

from collections import Counter

import pytest
from tests.support.brokers.apache_cluster import ApacheCluster

from semel.spark.kafka.client import TRANSACTION

pytestmark = [
    pytest.mark.spark,
    pytest.mark.interop,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("spark"),
]


@pytest.fixture
def brokers():
    with ApacheCluster() as made:
        yield made


def test_leaders_and_coordinators_may_move_to_other_brokers_under_a_batch(brokers, world, new_job):
    kafka = world(brokers.bootstrap)
    job = new_job(kafka)
    topic = kafka.topic(6, copies=3)
    for _ in range(4):
        job.lines.add(400, width=4000)
    moves = []

    def coordinator_of(sink) -> int:
        name = sink.committer._lender.transactional_id
        port = sink.committer.cluster.coordinator(TRANSACTION, name)._socket.getpeername()[1]
        return next(number for number, node in brokers.nodes.items() if node.port == port)

    def strike(point, batch):
        place = (point, batch)
        if place in moves:
            return
        if place == ("grant", 1):
            moves.append(place)
            # Its partitions are being written to; it is not the one that coordinates.
            other = next(n for n in brokers.nodes if n != coordinator_of(sink))
            brokers.nodes[other].kill()
            moves.append(other)
        elif place == ("before job", 2):
            moves.append(place)
            brokers.nodes[moves[1]].start()
        elif place == ("before commit", 3):
            moves.append(place)
            brokers.nodes[coordinator_of(sink)].kill()

    sink = job.sink(topic=topic, at=strike, batch_size=1)
    job.run(sink=sink)
    assert [place for place in moves if isinstance(place, tuple)] == [
        ("grant", 1),
        ("before job", 2),
        ("before commit", 3),
    ]
    assert kafka.values(topic) == Counter(job.lines.rows)
