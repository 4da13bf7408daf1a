"""Where to begin and how far to read: offsets by name, number, time, or from the sink's ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from semel.errors import NoCommittedOffsetsError, UsageError
from semel.spark.kafka.client import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    BlockingCluster,
    check,
    patiently,
)
from semel.spark.kafka.ledger import SparkLedger
from semel.spark.source.options import Positions, SourceOptions, Times, positions_of
from semel.wire.messages.list_offsets import ListOffsetsRequest

Target = tuple[str, int]
_PATIENCE_S = 60.0
_NAMED = {"earliest": EARLIEST, "latest": LATEST}
# Splitting a partition further than this costs more in requests than it saves.
_SMALLEST_PIECE = 10_000


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets low <= offset < high of one partition."""

    topic: str
    partition: int
    low: int
    high: int

    @property
    def size(self) -> int:
        return self.high - self.low


def offsets_at(
    cluster: BlockingCluster, wanted: dict[Target, int], committed_only: bool
) -> dict[Target, int]:
    """ListOffsets for many partitions: a time in ms, or EARLIEST or LATEST; -1 where none is."""
    isolation = READ_COMMITTED if committed_only else READ_UNCOMMITTED

    def attempt() -> dict[Target, int]:
        found: dict[Target, int] = {}
        for leader, targets in _by_leader(cluster, wanted).items():
            answer = cluster.node(leader).call(_request(targets, wanted, isolation))
            for topic in answer.topics:
                for entry in topic.partitions:
                    check(entry.error_code, f"offsets of {topic.name}-{entry.partition_index}")
                    found[topic.name, entry.partition_index] = entry.offset
        return found

    return patiently(attempt, "asking for offsets", _PATIENCE_S, cluster.forget_leaders)


def resolve(
    cluster: BlockingCluster,
    options: SourceOptions,
    targets: Iterable[Target],
    choice: str,
    times: Times | None,
) -> dict[Target, int]:
    """Offsets from an option's value: a name, a JSON of numbers, or a time."""
    targets = list(targets)
    if times is not None:
        wanted = _times(targets, times)
        found = offsets_at(cluster, wanted, options.committed_only)
        later = [target for target, offset in found.items() if offset < 0]
        ends = offsets_at(cluster, dict.fromkeys(later, LATEST), options.committed_only)
        return {**found, **ends}
    if choice in _NAMED:
        wanted = dict.fromkeys(targets, _NAMED[choice])
        return offsets_at(cluster, wanted, options.committed_only)
    numbers = _for_each(targets, _numbers(choice), "offsets")
    symbolic = {target: number for target, number in numbers.items() if number < 0}
    named = offsets_at(cluster, symbolic, options.committed_only)
    return {target: named.get(target, numbers[target]) for target in targets}


def _numbers(choice: str) -> Positions:
    try:
        return positions_of(json.loads(choice))
    except (ValueError, AttributeError):
        raise UsageError(
            "offsets are earliest, latest, committed (where to start), or numbers such as"
            f' {{"topic": {{"0": 5}}}}, not {choice!r}'
        ) from None


def _times(targets: list[Target], times: Times) -> dict[Target, int]:
    if isinstance(times, int):
        return dict.fromkeys(targets, times)
    return _for_each(targets, times, "times")


def _for_each(targets: list[Target], given: Positions, what: str) -> dict[Target, int]:
    flat = {(t, p): number for t, parts in given.items() for p, number in parts.items()}
    missing = set(targets) - set(flat)
    if missing:
        raise UsageError(f"{what} are given, but not for {sorted(missing)}")
    return {target: flat[target] for target in targets}


def from_ledger(cluster: BlockingCluster, options: SourceOptions) -> Positions:
    """Where the sink of `application` has got to."""
    assert options.application is not None
    batch = SparkLedger(cluster, options.application, options.ledger_topic).find()
    wanted = {topic for topic, _ in options.partitions(cluster)}
    for end in batch.end if batch else ():
        topics = end.get("topics", end) if isinstance(end, dict) else {}
        if wanted & set(topics):
            return positions_of(topics)
    raise NoCommittedOffsetsError(
        f"the ledger {options.ledger_topic!r} has no offsets of {sorted(wanted)} for application"
        f" {options.application!r}: start from earliest or latest, or name one of them in the"
        " option committedFallback"
    )


def limit_to(start: Positions, latest: Positions, allowed: int) -> Positions:
    """An end at most `allowed` offsets after the start, shared in proportion to what is there."""
    sizes = {
        (t, p): max(0, end - start.get(t, {}).get(p, end))
        for t, parts in latest.items()
        for p, end in parts.items()
    }
    total = sum(sizes.values())
    if total <= allowed:
        return latest
    share = {target: size * allowed // total for target, size in sizes.items()}
    left = allowed - sum(share.values())
    # What rounding leaves over goes to the largest, so that something always moves.
    for target in sorted(sizes, key=lambda entry: -sizes[entry]):
        if left and share[target] < sizes[target]:
            share[target] += 1
            left -= 1
    return {
        t: {p: end - sizes[t, p] + share[t, p] for p, end in parts.items()}
        for t, parts in latest.items()
    }


def ranges(start: Positions, end: Positions) -> list[Range]:
    found = [
        Range(t, p, start[t][p], high)
        for t, parts in end.items()
        for p, high in parts.items()
        if p in start.get(t, {}) and high > start[t][p]
    ]
    return sorted(found, key=lambda r: (r.topic, r.partition))


def pack(
    found: list[Range], tasks: int, at_least: int | None, at_most: int | None = None
) -> list[tuple[Range, ...]]:
    """Few tasks with many small partitions each: every task costs a worker's invocation.

    A partition is split only when that is asked for, by more tasks than there are partitions
    (`minPartitions`) or by a size (`maxRecordsPerPartition`): rows of one key are then no longer
    handled in order.
    """
    if at_most is not None:
        found = _split(found, at_most)
    if at_least is not None and at_least > len(found):
        total = sum(entry.size for entry in found)
        found, tasks = _split(found, max(_SMALLEST_PIECE, -(-total // at_least))), at_least
    packed = _share(found, tasks)
    if at_most is not None and any(sum(r.size for r in task) > at_most for task in packed):
        packed = _share(found, len(found))
    return packed


def _share(found: list[Range], tasks: int) -> list[tuple[Range, ...]]:
    """The largest first, each to whoever has least."""
    bins: list[list[Range]] = [[] for _ in range(min(tasks, len(found)))]
    loads = [0] * len(bins)
    for entry in sorted(found, key=lambda r: -r.size):
        lightest = loads.index(min(loads))
        bins[lightest].append(entry)
        loads[lightest] += entry.size
    return [tuple(sorted(b, key=lambda r: (r.topic, r.partition, r.low))) for b in bins]


def _split(found: list[Range], size: int) -> list[Range]:
    return [
        Range(r.topic, r.partition, low, min(low + size, r.high))
        for r in found
        for low in range(r.low, r.high, size)
    ]


def _by_leader(cluster: BlockingCluster, targets: Iterable[Target]) -> dict[int, list[Target]]:
    grouped: dict[int, list[Target]] = {}
    for topic, partition in targets:
        grouped.setdefault(cluster.leader_id(topic, partition), []).append((topic, partition))
    return grouped


def _request(
    targets: list[Target], wanted: dict[Target, int], isolation: int
) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
    for topic, partition in targets:
        topics.setdefault(topic, []).append(
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=partition, timestamp=wanted[topic, partition]
            )
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=parts)
            for name, parts in topics.items()
        ],
    )
