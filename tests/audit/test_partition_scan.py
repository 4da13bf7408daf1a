"""Logs with known faults, batch by batch."""

from __future__ import annotations

from semel.audit.findings import Anomaly
from semel.audit.partition_scan import PartitionScan, compare_outcomes
from semel.wire.batches import BatchBuilder, BatchHeader, control_batch


class Log:
    """Builds a partition as a broker would."""

    def __init__(self, name: str = "orders-0", *, compacted: bool = False) -> None:
        self.scan = PartitionScan(name, compacted=compacted)
        self.end = 0

    def batch(
        self, producer: int, epoch: int, sequence: int, records: int = 1, *, plain: bool = False
    ) -> Log:
        builder = BatchBuilder()
        for _ in range(records):
            builder.append(b"key", b"value", 1_000)
        built = builder.build(
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=not plain,
        )
        return self._append(bytes(built), records)

    def marker(self, producer: int, epoch: int, *, commit: bool = True) -> Log:
        built = control_batch(
            producer_id=producer,
            producer_epoch=epoch,
            commit=commit,
            coordinator_epoch=0,
            timestamp=2_000,
        )
        return self._append(bytes(built), 1)

    def _append(self, built: bytes, records: int) -> Log:
        header = BatchHeader(built)
        header.base_offset = self.end
        self.end += records
        self.scan.look(header)
        return self

    @property
    def found(self) -> set[Anomaly]:
        return set(self.scan.findings.counts)


def test_transactions_of_version_1_are_counted_by_their_markers():
    log = Log().batch(7, 0, 0, 3).marker(7, 0).batch(7, 0, 3).marker(7, 0, commit=False)
    assert (log.scan.committed, log.scan.aborted, log.scan.open) == (1, 1, [])
    assert not log.found
    assert not log.scan.outcomes


def test_transactions_of_version_2_are_known_by_their_epoch():
    log = Log().batch(7, 0, 0, 3).marker(7, 1).batch(7, 1, 0).marker(7, 2, commit=False)
    assert log.scan.outcomes == {(7, 0): True, (7, 1): False}
    assert not log.found


def test_the_first_open_transaction_is_who_holds_readers_back():
    log = Log().batch(8, 0, 0).marker(8, 1).batch(7, 0, 0).batch(9, 0, 0)
    first, second = log.scan.open
    assert (first.producer_id, first.first_offset) == (7, 2)
    assert second.producer_id == 9


def test_a_missing_batch_is_a_gap():
    log = Log().batch(7, 0, 0, 2).batch(7, 0, 3)
    assert log.found == {Anomaly.SEQUENCE_GAP}


def test_a_gap_in_a_compacted_log_proves_nothing():
    assert not Log(compacted=True).batch(7, 0, 0, 2).batch(7, 0, 3).found


def test_a_log_that_begins_in_the_middle_of_a_producer_has_no_gap():
    log = Log()
    log.end = 100  # retention removed what was before
    assert not log.batch(7, 0, 40, 2).batch(7, 0, 42).found


def test_sequences_go_on_at_zero_after_the_largest():
    log = Log()
    log.end = 100
    assert not log.batch(7, 0, 2**31 - 1).batch(7, 0, 0).found


def test_a_batch_that_is_there_twice_is_found():
    log = Log().batch(7, 0, 0).batch(7, 0, 1).batch(7, 0, 0)
    assert Anomaly.REPEATED_BATCH in log.found


def test_idempotent_producers_outside_of_transactions_are_judged_as_well():
    log = Log().batch(7, 0, 0, plain=True).batch(7, 0, 0, plain=True)
    assert log.found == {Anomaly.REPEATED_BATCH}


def test_an_old_epoch_after_a_newer_one_is_found():
    assert Log().batch(7, 1, 0).batch(7, 0, 1).found == {Anomaly.EPOCH_BACK}


def test_a_batch_of_an_ended_transaction_of_version_2_is_found():
    assert Log().batch(7, 0, 0).marker(7, 1).batch(7, 0, 1).found == {Anomaly.EPOCH_BACK}


def test_a_marker_of_an_old_epoch_is_found():
    assert Log().batch(7, 1, 0).marker(7, 0).found == {Anomaly.EPOCH_BACK}


def test_a_transaction_that_ended_differently_in_two_partitions_is_torn():
    one = Log("orders-0").batch(7, 0, 0).marker(7, 1)
    two = Log("orders-1").batch(7, 0, 0).marker(7, 1, commit=False)
    assert set(compare_outcomes([one.scan, two.scan]).counts) == {Anomaly.TORN}
    same = Log("orders-1").batch(7, 0, 0).marker(7, 1)
    assert not compare_outcomes([one.scan, same.scan])


def test_a_transaction_that_ended_elsewhere_lacks_a_marker_here():
    one = Log("orders-0").batch(7, 0, 0).marker(7, 1)
    two = Log("orders-1").batch(7, 0, 0)
    assert set(compare_outcomes([one.scan, two.scan]).counts) == {Anomaly.MARKER_MISSING}
