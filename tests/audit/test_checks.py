"""Every anomaly that the auditor knows, planted into a good history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from semel.audit.checks import judge
from semel.audit.findings import Anomaly
from semel.audit.history import Copied, History, Leg, Outcome, Read, Transfer

A0, B0, IN = "a-0", "b-0", "inputs-0"


def good() -> History:
    """Two transfers committed, one aborted, one of unknown outcome that counts; a chain in step."""
    history = History()
    for number, outcome in enumerate(
        (Outcome.COMMITTED, Outcome.COMMITTED, Outcome.ABORTED, Outcome.UNKNOWN)
    ):
        history.transfers["w", 0, number] = Transfer(outcome, (A0, B0))
        if outcome is not Outcome.ABORTED:
            for leg, place in enumerate((A0, B0)):
                history.reads.append(Read(place, number, Leg("w", 0, number, leg, 2)))
    history.chain.inputs = {IN: {0, 1, 3}}
    history.chain.copies = [Copied(IN, offset, f"copies-0 offset {offset}") for offset in (0, 1)]
    history.chain.committed = {IN: 2}
    return history


def test_a_good_history_has_no_anomaly():
    assert not judge(good())


def test_a_transfer_of_unknown_outcome_may_be_there_or_not():
    history = good()
    history.reads = [read for read in history.reads if read.leg.number != 3]
    assert not judge(history)


def _lose(history: History) -> None:
    history.reads = [read for read in history.reads if read.leg.number != 1]


def _tear(history: History) -> None:
    history.reads = [read for read in history.reads if (read.leg.number, read.leg.leg) != (3, 1)]


def _double(history: History) -> None:
    history.reads.append(replace(history.reads[0], offset=99))
    history.reads.sort(key=lambda read: read.offset)
    history.transfers = {
        key: transfer for key, transfer in history.transfers.items() if key[2] == 0
    }
    history.reads = [read for read in history.reads if read.leg.number == 0]


def _read_aborted(history: History) -> None:
    history.reads += [
        Read(A0, 50, Leg("z", 0, 0, 0, 1)),
    ]
    history.transfers["z", 0, 0] = Transfer(Outcome.ABORTED, (A0,))


def _invent(history: History) -> None:
    history.reads.append(Read(A0, 51, Leg("nobody", 0, 0, 0, 1)))


def _reorder(history: History) -> None:
    history.reads = [replace(read, offset=10 - read.offset) for read in history.reads]


def _revive(history: History) -> None:
    """A life that was replaced commits after its successor."""
    for life, offset in ((1, 20), (0, 21)):
        history.transfers["y", life, 7] = Transfer(Outcome.COMMITTED, (A0,))
        history.reads.append(Read(A0, offset, Leg("y", life, 7, 0, 1)))


def _change(history: History) -> None:
    history.changed.append((A0, 0))


def _vanish(history: History) -> None:
    history.vanished.append((A0, 0))


def _copy_twice(history: History) -> None:
    history.chain.copies.append(Copied(IN, 1, "copies-0 offset 9"))


def _skip_input(history: History) -> None:
    del history.chain.copies[0]


def _copy_ahead(history: History) -> None:
    history.chain.copies.append(Copied(IN, 3, "copies-0 offset 9"))


def _copy_aborted_input(history: History) -> None:
    history.chain.committed[IN] = 5
    history.chain.copies += [Copied(IN, 2, "copies-0 offset 8"), Copied(IN, 3, "copies-0 offset 9")]


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (_lose, {Anomaly.LOST}),
        (_tear, {Anomaly.TORN}),
        (_double, {Anomaly.DUPLICATED}),
        (_read_aborted, {Anomaly.ABORTED_READ}),
        (_invent, {Anomaly.PHANTOM}),
        (_reorder, {Anomaly.REORDERED}),
        (_revive, {Anomaly.REORDERED}),
        (_change, {Anomaly.UNSTABLE}),
        (_vanish, {Anomaly.UNSTABLE}),
        (_copy_twice, {Anomaly.DUPLICATED}),
        (_skip_input, {Anomaly.LOST}),
        (_copy_ahead, {Anomaly.OFFSETS}),
        (_copy_aborted_input, {Anomaly.PHANTOM}),
    ],
)
def test_a_planted_anomaly_is_found(plant: Callable[[History], None], found: set[Anomaly]):
    history = good()
    plant(history)
    assert set(judge(history).counts) == found


def test_a_committed_transfer_with_one_record_missing_is_lost_and_torn():
    history = good()
    history.reads = [read for read in history.reads if (read.leg.number, read.leg.leg) != (1, 1)]
    assert set(judge(history).counts) == {Anomaly.LOST, Anomaly.TORN}


def test_findings_keep_examples_and_count_the_rest():
    history = good()
    history.vanished += [(A0, offset) for offset in range(1_000)]
    findings = judge(history)
    assert findings.counts[Anomaly.UNSTABLE] == 1_000
    assert len(findings.of(Anomaly.UNSTABLE)) == 20
