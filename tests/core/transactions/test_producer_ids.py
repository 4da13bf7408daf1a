"""Producer ids never come twice."""

from semel.core.transactions.producer_ids import ProducerIds


class Cluster:
    """Blocks as a catalog hands them out: durable before they are used."""

    def __init__(self):
        self.next = 0

    def allocate(self):
        self.next += 3
        return range(self.next - 3, self.next)


def test_ids_come_one_by_one_from_block_after_block():
    ids = ProducerIds(Cluster().allocate)
    assert [ids.next() for _ in range(8)] == list(range(8))


def test_a_crash_skips_what_is_left_of_a_block_and_repeats_nothing():
    cluster = Cluster()
    before = ProducerIds(cluster.allocate)
    used = {before.next() for _ in range(4)}
    after = ProducerIds(cluster.allocate)
    assert used.isdisjoint({after.next() for _ in range(4)})


def test_no_block_is_allocated_before_it_is_needed():
    cluster = Cluster()
    ProducerIds(cluster.allocate)
    assert cluster.next == 0
