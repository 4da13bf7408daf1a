"""The assignors of the broker: `range` and `uniform`, as Kafka's but in the order of joining.

Both are given who wants which topics and who has what now, and say who should have what. `uniform`
moves as little as it can; `range` gives each member the same slice of every topic.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple
from uuid import UUID

from semel.core.groups.consumer.group import Assignment

# As many as Kafka's UniformHeterogeneousAssignmentBuilder: overlaps converge slowly.
MAX_BALANCING_ROUNDS = 16


class Subscriber(NamedTuple):
    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    has: Assignment


Assignor = Callable[[list[Subscriber], dict[UUID, int]], dict[str, Assignment]]


def range_(members: list[Subscriber], partition_counts: dict[UUID, int]) -> dict[str, Assignment]:
    """Static members first, by instance id, so that their slices survive a restart."""
    ordered = sorted(
        members, key=lambda m: (m.instance_id is None, m.instance_id or "", m.member_id)
    )
    result: dict[str, Assignment] = {member.member_id: {} for member in members}
    for topic_id in _topics(members):
        wanting = [member for member in ordered if topic_id in member.topics]
        size, extra = divmod(partition_counts[topic_id], len(wanting))
        start = 0
        for index, member in enumerate(wanting):
            end = start + size + (index < extra)
            if end > start:
                result[member.member_id][topic_id] = frozenset(range(start, end))
            start = end
    return result


def uniform(members: list[Subscriber], partition_counts: dict[UUID, int]) -> dict[str, Assignment]:
    if len({member.topics for member in members}) <= 1:
        return _uniform_alike(members, partition_counts)
    return _uniform_mixed(members, partition_counts)


ASSIGNORS: dict[str, Assignor] = {"uniform": uniform, "range": range_}


def _topics(members: list[Subscriber]) -> list[UUID]:
    return list(dict.fromkeys(t for member in members for t in sorted(member.topics)))


class _Allocation:
    """Who is given what, while an assignment is being made."""

    def __init__(self, members: list[Subscriber], partition_counts: dict[UUID, int]) -> None:
        self.given: dict[str, dict[UUID, set[int]]] = {m.member_id: {} for m in members}
        self.load: dict[str, int] = dict.fromkeys(self.given, 0)
        self.free = {
            topic_id: dict.fromkeys(range(partition_counts[topic_id]))
            for topic_id in _topics(members)
        }

    def give(self, member_id: str, topic_id: UUID, partition: int) -> None:
        self.given[member_id].setdefault(topic_id, set()).add(partition)
        self.load[member_id] += 1
        self.free[topic_id].pop(partition, None)

    def move(self, topic_id: UUID, from_id: str, to_id: str) -> None:
        partition = max(self.given[from_id][topic_id])
        self.given[from_id][topic_id].remove(partition)
        self.load[from_id] -= 1
        self.give(to_id, topic_id, partition)

    def result(self) -> dict[str, Assignment]:
        return {
            member_id: {topic_id: frozenset(p) for topic_id, p in topics.items() if p}
            for member_id, topics in self.given.items()
        }


def _uniform_alike(
    members: list[Subscriber], partition_counts: dict[UUID, int]
) -> dict[str, Assignment]:
    """All want the same: everyone gets ⌊n/m⌋ or one more; who has more than its share keeps it.

    By sets of partitions, not one by one: this is computed anew for every member that comes.
    """
    free = {topic_id: set(range(partition_counts[topic_id])) for topic_id in _topics(members[:1])}
    share, extras = divmod(sum(map(len, free.values())), len(members)) if members else (0, 0)
    result: dict[str, Assignment] = {}
    missing: dict[str, int] = {}
    for index, member in enumerate(members):
        had = {t: p if p <= free[t] else p & free[t] for t, p in member.has.items() if t in free}
        size = sum(map(len, had.values()))
        # The larger shares go to those who fill them already, as long as enough others are left.
        wants_extra = size > share or len(members) - index <= extras
        quota = share + 1 if extras and wants_extra else share
        extras -= quota > share
        kept = had if size <= quota else _take(_sorted(had), quota)
        for topic_id, partitions in kept.items():
            free[topic_id] -= partitions
        result[member.member_id] = {t: p for t, p in kept.items() if p}
        missing[member.member_id] = max(quota - size, 0)
    left = _sorted(free)
    for member_id, count in missing.items():
        assignment = result[member_id]
        for topic_id, given in _take(left, count).items():
            assignment[topic_id] = assignment.get(topic_id, frozenset()) | given
    return result


def _sorted(partitions: Mapping[UUID, AbstractSet[int]]) -> dict[UUID, list[int]]:
    return {topic_id: sorted(numbers) for topic_id, numbers in partitions.items() if numbers}


def _take(left: dict[UUID, list[int]], count: int) -> Assignment:
    """The first so many; they are then gone from `left`."""
    taken: Assignment = {}
    while count:
        topic_id = next(iter(left))
        numbers = left[topic_id]
        taken[topic_id] = frozenset(numbers[:count])
        del numbers[:count]
        if not numbers:
            del left[topic_id]
        count -= len(taken[topic_id])
    return taken


def _uniform_mixed(
    members: list[Subscriber], partition_counts: dict[UUID, int]
) -> dict[str, Assignment]:
    """Subscriptions differ: keep what is held, hand out the rest, then even out topic by topic."""
    allocation = _Allocation(members, partition_counts)
    wanting = {t: [m.member_id for m in members if t in m.topics] for t in allocation.free}
    for member in members:
        for topic_id, partitions in member.has.items():
            if topic_id in member.topics:
                for partition in sorted(partitions):
                    if partition in allocation.free[topic_id]:
                        allocation.give(member.member_id, topic_id, partition)
    # Topics with most partitions per subscriber first: the others can still even things out.
    ordered = sorted(
        wanting,
        key=lambda t: (-partition_counts[t] / len(wanting[t]), len(wanting[t]), t),
    )
    for topic_id in ordered:
        for partition in list(allocation.free[topic_id]):
            least = min(wanting[topic_id], key=allocation.load.__getitem__)
            allocation.give(least, topic_id, partition)
    for _ in range(MAX_BALANCING_ROUNDS):
        moves = [_balance(allocation, topic_id, wanting[topic_id]) for topic_id in ordered]
        if not any(moves):
            break
    return allocation.result()


def _balance(allocation: _Allocation, topic_id: UUID, member_ids: list[str]) -> bool:
    """Move partitions of one topic from its busiest to its idlest subscribers."""
    has_moved = False
    while True:
        holders = [m for m in member_ids if allocation.given[m].get(topic_id)]
        if not holders:
            return has_moved
        most = max(holders, key=allocation.load.__getitem__)
        least = min(member_ids, key=allocation.load.__getitem__)
        if allocation.load[most] - allocation.load[least] <= 1:
            return has_moved
        allocation.move(topic_id, most, least)
        has_moved = True
