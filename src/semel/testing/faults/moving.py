"""A coordinator that moves: unloaded, loaded again, and to be looked up anew by its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semel.testing.faults.mentions import Mentions
    from semel.testing.faults.watching import RequestWatch
    from semel.testing.running import BrokerUnderTest

_LOOK_UP = "FindCoordinator"
#: The APIs that a coordinator answers.
_OF_TRANSACTIONS = {"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"}
_OF_GROUPS = {
    "ConsumerGroupHeartbeat",
    "Heartbeat",
    "JoinGroup",
    "LeaveGroup",
    "OffsetCommit",
    "OffsetFetch",
    "SyncGroup",
    "TxnOffsetCommit",
}


class MovedCoordinators:
    """The ids and groups whose clients have yet to look for their coordinator again."""

    def __init__(self) -> None:
        self.transactional_ids: set[str] = set()
        self.group_ids: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.transactional_ids or self.group_ids)

    def meets(self, api: str, about: Mentions) -> bool:
        """Whether the request went to where the coordinator is no longer."""
        if api == _LOOK_UP:
            self.transactional_ids.difference_update(about.transactional_ids)
            self.group_ids.difference_update(about.group_ids)
            return False
        if api in _OF_TRANSACTIONS:
            return not self.transactional_ids.isdisjoint(about.transactional_ids)
        return api in _OF_GROUPS and not self.group_ids.isdisjoint(about.group_ids)

    def clear(self) -> None:
        self.transactional_ids.clear()
        self.group_ids.clear()


def move_coordinator(
    broker: BrokerUnderTest,
    watch: RequestWatch,
    transactional_id: str | None,
    group_id: str | None,
) -> None:
    if transactional_id is not None and group_id is None:
        id = transactional_id
        watch.moved.transactional_ids.add(id)
        broker.call(lambda: broker.reload_transactions(id))
    elif group_id is not None and transactional_id is None:
        group = group_id
        watch.moved.group_ids.add(group)
        broker.call(lambda: broker.reload_group(group))
    else:
        raise TypeError("whose coordinator moves: say transactional_id=… or group_id=…")
