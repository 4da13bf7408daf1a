"""Judges a history: one function per promise. Pure.

Kafka promises that a transaction becomes visible as a whole *in the end*: its markers are written
one after the other, so a reader may see one partition before the other. So all is judged from a
reading that was made after every transaction had ended.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from semel.audit.findings import Anomaly, Findings
from semel.audit.history import History, Outcome, Read

_Key = tuple[str, int, int]


def judge(history: History) -> Findings:
    findings = Findings()
    for check in CHECKS:
        check(history, findings)
    return findings


def _named(transfer: _Key) -> str:
    writer, life, number = transfer
    return f"transfer {number} of {writer} (life {life})"


def _by_transfer(history: History) -> dict[_Key, list[Read]]:
    found: dict[_Key, list[Read]] = {}
    for read in history.reads:
        found.setdefault(read.leg.transfer, []).append(read)
    return found


def _places(reads: list[Read]) -> str:
    return ", ".join(f"{read.partition} offset {read.offset}" for read in reads)


def nothing_is_lost_or_torn(history: History, findings: Findings) -> None:
    seen = _by_transfer(history)
    for key, transfer in history.transfers.items():
        reads = seen.get(key, [])
        there = {read.leg.leg for read in reads}
        missing = len(transfer.partitions) - len(there)
        if transfer.outcome is Outcome.COMMITTED and missing:
            said = f"{missing} of {len(transfer.partitions)} records are not there"
            findings.found(Anomaly.LOST, _named(key), said)
        if there and missing:
            said = f"{len(there)} of {len(transfer.partitions)} records: {_places(reads)}"
            findings.found(Anomaly.TORN, _named(key), said)


def nothing_is_doubled(history: History, findings: Findings) -> None:
    for key, reads in _by_transfer(history).items():
        by_leg: dict[int, list[Read]] = {}
        for read in reads:
            by_leg.setdefault(read.leg.leg, []).append(read)
        for leg, places in by_leg.items():
            if len(places) > 1:
                said = f"record {leg} is at {_places(places)}"
                findings.found(Anomaly.DUPLICATED, _named(key), said)


def nothing_aborted_is_read(history: History, findings: Findings) -> None:
    for key, reads in _by_transfer(history).items():
        transfer = history.transfers.get(key)
        if transfer is None:
            findings.found(Anomaly.PHANTOM, _named(key), f"read at {_places(reads)}")
        elif transfer.outcome is Outcome.ABORTED:
            findings.found(Anomaly.ABORTED_READ, _named(key), f"read at {_places(reads)}")


def order_is_kept(history: History, findings: Findings) -> None:
    """Within a partition, a writer's transfers come in the order of its lives and numbers."""
    lanes: dict[tuple[str, str], list[Read]] = {}
    for read in history.reads:
        lanes.setdefault((read.leg.writer, read.partition), []).append(read)
    for (writer, partition), reads in lanes.items():
        reads.sort(key=lambda read: read.offset)
        for before, after in pairwise(reads):
            if (after.leg.life, after.leg.number) < (before.leg.life, before.leg.number):
                said = (
                    f"{_named(after.leg.transfer)} at offset {after.offset} comes after "
                    f"{_named(before.leg.transfer)} at offset {before.offset}"
                )
                findings.found(Anomaly.REORDERED, f"{writer} in {partition}", said)


def reads_are_stable(history: History, findings: Findings) -> None:
    for partition, offset in history.changed:
        where = f"{partition} offset {offset}"
        findings.found(Anomaly.UNSTABLE, where, "another record than before")
    for partition, offset in history.vanished:
        where = f"{partition} offset {offset}"
        findings.found(Anomaly.UNSTABLE, where, "was read as committed, and is gone")


def offsets_are_in_step(history: History, findings: Findings) -> None:
    """Every input below the group's offset was copied once, and none at or above it."""
    chain = history.chain
    copies: dict[tuple[str, int], list[str]] = {}
    for copy in chain.copies:
        copies.setdefault((copy.partition, copy.offset), []).append(copy.output)
    for (partition, offset), outputs in copies.items():
        where = f"input {partition} offset {offset}"
        if len(outputs) > 1:
            findings.found(Anomaly.DUPLICATED, where, f"was copied to {', '.join(outputs)}")
        if offset not in chain.inputs.get(partition, ()):
            findings.found(Anomaly.PHANTOM, where, "was copied, but is no committed input")
        if offset >= chain.committed.get(partition, 0):
            said = f"was copied, but the group's offset is {chain.committed.get(partition, 0)}"
            findings.found(Anomaly.OFFSETS, where, said)
    for partition, offsets in chain.inputs.items():
        done = chain.committed.get(partition, 0)
        for offset in sorted(offsets):
            if offset < done and (partition, offset) not in copies:
                said = f"was not copied, but the group's offset is {done}"
                findings.found(Anomaly.LOST, f"input {partition} offset {offset}", said)


CHECKS: tuple[Callable[[History, Findings], None], ...] = (
    nothing_is_lost_or_torn,
    nothing_is_doubled,
    nothing_aborted_is_read,
    order_is_kept,
    reads_are_stable,
    offsets_are_in_step,
)
