"""Whatever was written and whenever it is compacted or cut short: readers see the same table."""

from random import Random
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.disks import FaultyFiles, PowerLoss
from tests.support.transactional_log import TransactionalLog

from semel.store.directory import DiskStore
from semel.store.interface import LogConfig
from semel.wire.batches import headers

CONFIG = LogConfig(
    segment_bytes=900,
    index_interval_bytes=120,
    compact=True,
    delete=False,
    delete_retention_ms=200,
    file_delete_delay_ms=0,
)


class Author:
    """Writes into a log at random, as plain, idempotent and transactional producers do."""

    def __init__(self, world, random):
        self.world = world
        self.random = random
        self.open: set[int] = set()

    def act(self):
        kind = self.random.choice(["plain", "idempotent", "transactional", "transactional", "end"])
        if kind == "plain":
            self.world.write(self.pairs())
        elif kind == "idempotent":
            self.world.write(self.pairs(), producer_id=self.random.randint(100, 102))
        elif kind == "transactional":
            producer_id = self.random.randint(1, 3)
            self.open.add(producer_id)
            self.world.write(self.pairs(), producer_id=producer_id, transactional=True)
        elif self.open:
            producer_id = self.open.pop()
            self.world.end(producer_id, commit=self.random.random() < 0.5)
        if self.random.random() < 0.1:
            self.world.log.roll()

    def pairs(self):
        value = b"%d" % self.world.log.next_offset
        return [
            (b"key %d" % self.random.randint(0, 5), None if self.random.random() < 0.2 else value)
            for _ in range(self.random.randint(1, 3))
        ]

    def close_all(self):
        for producer_id in sorted(self.open):
            self.world.end(producer_id, commit=True)
        self.open.clear()


class View:
    """All that must not change."""

    def __init__(self, world):
        self.committed = world.committed()
        self.latest = world.latest()
        self.producers = {
            producer_id: (producer.epoch, producer.last_sequence)
            for producer_id, producer in world.state.producers.items()
        }

    def must_equal(self, world):
        after = world.committed()
        assert after == [record for record in self.committed if record in after], "in order"
        assert world.latest() == self.latest
        assert not [r for r in after if r.key is None]
        for offset in range(0, world.log.next_offset, 3):
            assert world.committed(offset) == [r for r in after if r.offset >= offset]
        replayed = TransactionalLog(world.log)
        replayed.reload(world.log)
        assert replayed.state.stability == world.state.stability
        for producer_id, (epoch, last_sequence) in self.producers.items():
            producer = replayed.state.producers.get(producer_id)
            assert (producer.epoch, producer.last_sequence) == (epoch, last_sequence)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32), rounds=st.integers(1, 5), small_map=st.booleans())
def test_readers_see_the_same_before_and_after(tmp_path_factory, seed, rounds, small_map):
    random = Random(seed)
    store = DiskStore(tmp_path_factory.mktemp("log"))
    world = TransactionalLog(store.create("t", 0, uuid4(), CONFIG))
    author = Author(world, random)
    for _ in range(rounds):
        for _ in range(random.randint(5, 60)):
            author.act()
        if random.random() < 0.5:
            author.close_all()
        view = View(world)
        world.compact(world.now_ms + random.choice([0, 100, 1_000]), 700 if small_map else 1 << 20)
        view.must_equal(world)
    store.close()


@pytest.mark.parametrize("seed", range(150))
def test_a_compaction_cut_short_is_completed_or_undone(seed, tmp_path):
    random = Random(seed)
    root = tmp_path / "before"
    root.mkdir()
    files = FaultyFiles(root)
    store = DiskStore(root, files=files, durability="fsync")
    world = TransactionalLog(store.create("t", 0, uuid4(), CONFIG))
    author = Author(world, random)
    for _ in range(60):
        author.act()
    author.close_all()
    if random.random() < 0.5:
        world.compact()
        for _ in range(20):
            author.act()
        author.close_all()
    view = View(world)
    files.crash_after = files.changes + random.randint(1, 60)
    try:
        world.compact(world.now_ms + random.choice([0, 1_000]))
        files.crash_after = None
    except PowerLoss:
        pass
    store._lock = None
    for life in range(2):
        # The power may fail again while the first failure is being repaired.
        root = tmp_path / str(life)
        root.mkdir()
        files.after_power_loss(root, random)
        files = FaultyFiles(root, crash_after=random.randint(1, 30) if life == 0 else None)
        try:
            store = DiskStore(root, files=files, durability="fsync")
            log = store.open("t", 0, CONFIG)
        except PowerLoss:
            continue
    world.reload(log)
    view.must_equal(world)
    assert not [name for name in files._names if name.endswith((".cleaned", ".swap"))]
    world.compact(world.now_ms + 1_000)
    view.must_equal(world)


def test_a_merge_stopped_after_any_of_its_steps_leaves_every_offset_once(tmp_path):
    """Three small segments become one; the process is killed after the 1st, 2nd, … change."""
    stopped_at = 0
    while True:
        stopped_at += 1
        root = tmp_path / str(stopped_at)
        root.mkdir()
        files = FaultyFiles(root)
        store = DiskStore(root, files=files)
        world = TransactionalLog(store.create("t", 0, uuid4(), CONFIG))
        for segment in range(4):
            for number in range(3):
                producer_id = number + 1
                world.write([(b"key %d" % number, b"%d" % segment)], producer_id, True)
                world.end(producer_id, commit=(segment + number) % 2 == 0)
            world.log.roll()
        world.log.config = LogConfig(compact=True, index_interval_bytes=120)
        world.write([(b"end", b"")])
        view = View(world)
        files.crash_after = files.changes + stopped_at
        finished = True
        try:
            world.compact()
        except PowerLoss:
            finished = False
        store._lock = None
        log = DiskStore(root).open("t", 0, CONFIG)
        world.reload(log)
        view.must_equal(world)
        ends = [0]
        for path in sorted((root / "t-0").glob("*.log")):
            for batch in headers(path.read_bytes()):
                assert batch.base_offset >= ends[-1], "an offset lies in two segments"
                ends.append(batch.next_offset)
        if finished:
            assert len(log.segments()) == 2
            return
