"""How the leader of a classic group divides partitions: range, round-robin, sticky, cooperative.

An assignor takes what each member subscribes to and owns, and how many partitions topics have.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from semel.client.machines.types import TopicPartition

Assignment = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Member:
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    instance_id: str | None = None


Assignor = Callable[[Mapping[str, Member], Mapping[str, int]], Assignment]


def assign_range(members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
    """Topic by topic, neighbouring partitions together; the first members get one more."""
    result: Assignment = {member: [] for member in members}
    for topic, count in sorted(partitions.items()):
        readers = _in_order((m for m in members if topic in members[m].topics), members)
        if not readers:
            continue
        share, extra = divmod(count, len(readers))
        start = 0
        for index, reader in enumerate(readers):
            size = share + (index < extra)
            result[reader] += [TopicPartition(topic, p) for p in range(start, start + size)]
            start += size
    return result


def assign_round_robin(members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
    """All partitions of all topics in turn to those who subscribe to them."""
    result: Assignment = {member: [] for member in members}
    order = _in_order(members, members)
    turn = 0
    for partition in _all(partitions):
        if not any(partition.topic in members[m].topics for m in order):
            continue
        while partition.topic not in members[order[turn % len(order)]].topics:
            turn += 1
        result[order[turn % len(order)]].append(partition)
        turn += 1
    return result


def assign_sticky(members: Mapping[str, Member], partitions: Mapping[str, int]) -> Assignment:
    """As even as possible, and within that everybody keeps what they have."""
    result: Assignment = {member: [] for member in sorted(members)}
    free = set(_all(partitions))
    claims = _claims(members)
    for member in sorted(members, key=lambda m: (-len(members[m].owned), m)):
        for partition in sorted(members[member].owned):
            if claims.get(partition) == member and partition in free:
                result[member].append(partition)
                free.discard(partition)
    for partition in sorted(free, key=lambda p: (_readers(members, p), p)):
        readers = [m for m in result if partition.topic in members[m].topics]
        if readers:
            result[min(readers, key=lambda m: (len(result[m]), m))].append(partition)
    _even_out(result, members)
    return {member: sorted(owned) for member, owned in result.items()}


def assign_cooperatively(
    members: Mapping[str, Member], partitions: Mapping[str, int]
) -> Assignment:
    """Sticky, but what must change hands is first given to nobody: its owner gives it up (KIP-429)
    and joins again, and only then does the new owner get it."""
    target = assign_sticky(members, partitions)
    owner = _claims(members)
    return {
        member: [p for p in mine if owner.get(p, member) == member]
        for member, mine in target.items()
    }


ASSIGNORS: dict[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperatively,
}


def _all(partitions: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(t, p) for t in sorted(partitions) for p in range(partitions[t])]


def _in_order(names: Iterable[str], members: Mapping[str, Member]) -> list[str]:
    """Static members by their instance id first, so that restarts do not change the order."""
    return sorted(
        names, key=lambda m: (members[m].instance_id is None, members[m].instance_id or m)
    )


def _claims(members: Mapping[str, Member]) -> dict[TopicPartition, str]:
    """Who owns a partition: of two that claim it, the one of the later generation."""
    claims: dict[TopicPartition, str] = {}
    for name, member in sorted(members.items()):
        for partition in member.owned:
            if partition.topic not in member.topics:
                continue
            other = claims.get(partition)
            if other is None or members[other].generation < member.generation:
                claims[partition] = name
    return claims


def _readers(members: Mapping[str, Member], partition: TopicPartition) -> int:
    return sum(partition.topic in member.topics for member in members.values())


def _even_out(result: Assignment, members: Mapping[str, Member]) -> None:
    """Moves one partition at a time, from who has most to who has least and may have it."""
    while (move := _next_move(result, members)) is not None:
        partition, giver, taker = move
        result[giver].remove(partition)
        result[taker].append(partition)


def _next_move(
    result: Assignment, members: Mapping[str, Member]
) -> tuple[TopicPartition, str, str] | None:
    for giver in sorted(result, key=lambda m: (-len(result[m]), m)):
        for partition in sorted(result[giver], reverse=True):
            readers = (m for m in result if partition.topic in members[m].topics)
            taker = min(readers, key=lambda m: (len(result[m]), m))
            if len(result[taker]) + 1 < len(result[giver]):
                return partition, giver, taker
    return None
