"""Groups of a broker under test: their offsets, and members whose session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.core.groups.commands import Tick
from semel.core.groups.draft import session_key
from semel.core.groups.timers import TimerDeadline

if TYPE_CHECKING:
    from semel.core.groups.coordinator import GroupCoordinator
    from semel.testing.running import BrokerUnderTest


def committed_offsets(broker: BrokerUnderTest, group_id: str) -> dict[tuple[str, int], int]:
    machine = _machine(broker, group_id)
    return {
        (topic, partition): committed.offset
        for topic, partitions in machine.state.offsets.of_group(group_id).items()
        for partition, committed in partitions.items()
    }


def expire_session(broker: BrokerUnderTest, group_id: str, member_id: str | None) -> list[str]:
    machine = _machine(broker, group_id)
    group = machine.state.groups.get(group_id)
    members = sorted(group.members) if group is not None else []
    chosen = members if member_id is None else [m for m in members if m == member_id]
    if not chosen:
        wanted = "no members" if member_id is None else f"no member {member_id!r}"
        raise LookupError(
            f"group {group_id!r} has {wanted}; its members: {', '.join(members) or '-'}"
        )
    shard = broker.groups.shard_of(group_id)
    for member in chosen:
        key = session_key(group_id, member)
        known = machine.state.timers.get(key)
        note = known.note if known is not None else -1
        machine.state.timers.set(key, TimerDeadline(0, note))
        shard.submit(Tick())
    return chosen


def _machine(broker: BrokerUnderTest, group_id: str) -> GroupCoordinator:
    machine = broker.groups.shard_of(group_id).machine
    if machine is None:
        raise RuntimeError(f"the coordinator of group {group_id!r} is not loaded")
    return machine
