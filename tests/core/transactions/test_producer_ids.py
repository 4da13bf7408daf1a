"""Producer ids never come twice."""

from semel.core.transactions.producer_ids import ProducerIds


class Cluster:
    """Blocks as a catalog hands them out: durable before they are used."""

    def __init__(self, size=3):
        self.next = 0
        self.size = size

    def allocate(self):
        self.next += self.size
        return range(self.next - self.size, self.next)


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


def test_the_next_block_is_ordered_once_before_the_last_id_is_given_out():
    cluster = Cluster(1_000)
    orders = []
    ids = ProducerIds(cluster.allocate, lambda: orders.append(len(given)))
    given: list[int] = []
    for _ in range(1_000):
        given.append(ids.next())
    assert orders == [899]
    ids.add(cluster.allocate())
    given += [ids.next() for _ in range(1_000)]
    assert len(set(given)) == 2_000
    assert len(orders) == 2


def test_an_order_that_failed_is_made_again():
    orders = []
    ids = ProducerIds(Cluster(1_000).allocate, lambda: orders.append(1))
    for _ in range(950):
        ids.next()
    ids.not_added()
    ids.next()
    assert len(orders) == 2
