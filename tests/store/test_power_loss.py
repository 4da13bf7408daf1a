"""Whenever the power fails: what was acknowledged is there, in order, and nothing else."""

from random import Random
from uuid import uuid4

import pytest
from tests.support.disks import FaultyFiles, PowerLoss

from semel.store.directory import DiskStore
from semel.store.interface import LogConfig

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)


class Life:
    """One run of a broker on one disk, doing at random what brokers do, until the power fails."""

    def __init__(self, root, random, make_batch, written, acknowledged, durability, epoch):
        self.random = random
        self.make_batch = make_batch
        self.written = written  # batches in order; what may be found is a beginning of this
        self.acknowledged = acknowledged  # how many of them must be found
        self.start = 0
        self.durability = durability
        self.epoch = epoch
        self.files = FaultyFiles(root, crash_after=random.randint(1, 160))
        self.root = root
        self.store = self.log = None

    def run(self):
        try:
            self.store = DiskStore(
                self.root, durability=self.durability, files=self.files, open_files=5
            )
            if not self.store.list():
                self.store.create("t", 0, uuid4(), CONFIG)
            self.log = self.store.open("t", 0, CONFIG)
            self.check_what_is_there()
            while True:
                self.random.choice(
                    [self.append, self.append, self.append, self.roll, self.checkpoint]
                    + [self.truncate, self.delete, self.sync, self.epochs, self.side_file]
                    + ([self.stop_and_start] if self.random.random() < 0.2 else [])
                )()
        except PowerLoss:
            pass
        if self.store is not None:
            self.store._lock = None  # what the end of a process releases

    def check_what_is_there(self):
        self.start = max(self.start, self.log.start_offset)
        found = [bytes(batch) for batch in self.log.batches(self.log.start_offset)]
        expected = [b for b in self.written if end_of(b) > self.log.start_offset]
        assert found == expected[: len(found)]
        must = [b for b in self.written[: self.acknowledged] if end_of(b) > self.log.start_offset]
        assert len(found) >= len(must), "an acknowledged batch is lost"
        kept = len(self.written) - len(expected) + len(found)
        del self.written[kept:]
        # Recovery syncs what it found before anybody may read it.
        self.acknowledged = len(self.written)
        ends = [end_of(b) for b in self.written]
        assert self.log.next_offset == max([self.log.start_offset, *ends])

    def append(self):
        offset, batches = self.log.next_offset, []
        for _ in range(self.random.randint(1, 3)):
            count = self.random.randint(1, 3)
            value = bytes([self.random.randint(1, 255)]) * self.random.choice([5, 90, 700])
            batches.append(self.make_batch(offset, count, value=value, epoch=self.epoch))
            offset += count
        self.written += [bytes(batch) for batch in batches]
        ticket = self.log.append(batches)
        if self.durability == "fsync":
            assert ticket.durable, ticket.error
            self.acknowledged = len(self.written)

    def sync(self):
        assert self.log.sync().durable
        self.acknowledged = len(self.written)

    def truncate(self):
        if self.random.random() < 0.8:
            return
        offset = self.random.randint(self.log.start_offset, self.log.next_offset)
        kept = sum(end_of(b) <= offset for b in self.written)
        self.acknowledged = min(self.acknowledged, kept)
        self.log.truncate(offset)
        if self.durability == "fsync":
            del self.written[kept:]

    def delete(self):
        if self.random.random() < 0.7:
            return
        self.log.delete_below(self.random.randint(self.log.start_offset, self.log.next_offset))

    def roll(self):
        self.log.roll()

    def checkpoint(self):
        self.store.checkpoint()
        list(self.store.sweep())

    def epochs(self):
        self.log.assign_epoch(self.epoch, self.log.next_offset)

    def side_file(self):
        self.log.append_side_file(self.log.segments()[-1].base_offset, "txnindex", b"x" * 34)
        self.log.write_side_file(self.log.next_offset, "snapshot", b"state")

    def stop_and_start(self):
        self.store.close()
        self.acknowledged = len(self.written)
        self.store = DiskStore(
            self.root, durability=self.durability, files=self.files, open_files=5
        )
        self.log = self.store.open("t", 0, CONFIG)
        assert self.log.recovered_from is None
        self.check_what_is_there()


def end_of(batch) -> int:
    return int.from_bytes(batch[:8]) + int.from_bytes(batch[23:27]) + 1


@pytest.mark.parametrize("seed", range(300))
def test_nothing_acknowledged_is_lost_when_the_power_fails(seed, tmp_path, batch):
    random = Random(seed)
    written: list[bytes] = []
    acknowledged = 0
    root = tmp_path / "0"
    root.mkdir()
    for epoch in range(4):
        life = Life(root, random, batch, written, acknowledged, "fsync", epoch)
        life.run()
        acknowledged = life.acknowledged
        root = tmp_path / str(epoch + 1)
        root.mkdir()
        life.files.after_power_loss(root, random)


@pytest.mark.parametrize("seed", range(100))
def test_a_killed_process_loses_nothing_it_had_written(seed, tmp_path, batch):
    """Durability `os`: the kernel keeps what was written, so what was appended is there."""
    random = Random(seed)
    written: list[bytes] = []
    acknowledged = 0
    for epoch in range(4):
        life = KilledLife(tmp_path, random, batch, written, acknowledged, "os", epoch)
        life.run()
        acknowledged = life.acknowledged


class KilledLife(Life):
    def append(self):
        super().append()
        self.acknowledged = len(self.written)

    def truncate(self):
        """Left out: a truncation cut short may or may not have happened, and says nothing here."""
