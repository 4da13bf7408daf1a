"""One step of a member towards its target: give up first, receive only what is free (KIP-848).

The rules are those of Kafka's CurrentAssignmentBuilder. A member stays in its epoch until it has
given up what is no longer its own; then it enters the target's epoch at once, and receives the rest
of its partitions as their former owners let go.
"""

from uuid import UUID

from semel.core.groups.consumer.group import Assignment, ConsumerGroup, ConsumerMember, Owned
from semel.core.groups.replies import RequestRefused
from semel.core.groups.states import MemberState
from semel.wire.errors import ErrorCode

Reported = dict[UUID, set[int]] | None  # what the member says it owns; None: it did not say


def reconcile(
    group: ConsumerGroup,
    member: ConsumerMember,
    subscribed: set[UUID],
    target_epoch: int,
    target: Assignment,
    has_new_subscription: bool,
    reported: Reported,
) -> ConsumerMember:
    if not has_new_subscription and member.is_reconciled_to(target_epoch):
        return member
    step = _Step(group, member, subscribed, target_epoch, target, reported)
    match member.state:
        case MemberState.STABLE if member.epoch == target_epoch:
            return step.drop_unsubscribed()
        case MemberState.UNREVOKED_PARTITIONS if step.still_owns(member.revoking):
            return step.drop_unsubscribed() if has_new_subscription else member
        case MemberState.UNKNOWN:
            if reported is None or reported:
                raise RequestRefused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The member is in an unknown state and must rejoin without partitions.",
                )
    return step.towards_target()


class _Step:
    def __init__(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        subscribed: set[UUID],
        target_epoch: int,
        target: Assignment,
        reported: Reported,
    ) -> None:
        self.group = group
        self.member = member
        self.subscribed = subscribed
        self.target_epoch = target_epoch
        self.target = target
        self.reported = reported

    def still_owns(self, partitions: Owned) -> bool:
        """A member that does not say what it owns is taken to own everything."""
        if self.reported is None:
            return True
        return any(
            not self.reported[topic_id].isdisjoint(numbers)
            for topic_id, numbers in partitions.items()
            if topic_id in self.reported
        )

    def drop_unsubscribed(self) -> ConsumerMember:
        """No newer target yet, but the member no longer wants some topics it has."""
        member = self.member
        dropped = {t: p for t, p in member.assigned.items() if t not in self.subscribed}
        if not dropped:
            return member
        kept = {t: p for t, p in member.assigned.items() if t in self.subscribed}
        revoking = {t: dict(p) for t, p in member.revoking.items()}
        for topic_id, partitions in dropped.items():
            revoking.setdefault(topic_id, {}).update(partitions)
        if self.still_owns(revoking):
            return _moved(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
        return member._replace(previous_epoch=member.epoch, assigned=kept)

    def towards_target(self) -> ConsumerMember:
        kept: Owned = {}
        revoking: Owned = {}
        free: Owned = {}
        has_unreleased = False
        for topic_id in dict.fromkeys([*self.target, *self.member.assigned]):
            target = self.target.get(topic_id, frozenset())
            if topic_id not in self.subscribed:
                target = frozenset()
            has = self.member.assigned.get(topic_id, {})
            _put(kept, topic_id, {p: e for p, e in has.items() if p in target})
            _put(revoking, topic_id, {p: e for p, e in has.items() if p not in target})
            missing = [p for p in target if p not in has]
            available = self._free_of(topic_id, missing)
            has_unreleased = has_unreleased or len(available) < len(missing)
            _put(free, topic_id, dict.fromkeys(available, self.target_epoch))

        if revoking and self.still_owns(revoking):
            return _moved(
                self.member, self.member.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking
            )
        for topic_id, partitions in free.items():
            kept[topic_id] = {**kept.get(topic_id, {}), **partitions}
        state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
        return _moved(self.member, self.target_epoch, state, kept, {})

    def _free_of(self, topic_id: UUID, partitions: list[int]) -> list[int]:
        """What nobody holds. What the member itself was asked to give up may come straight back."""
        held = self.group.owner_epochs.get(topic_id, {})
        own = self.member.revoking.get(topic_id, {})
        return [p for p in partitions if p not in held or p in own]


def _put(owned: Owned, topic_id: UUID, partitions: dict[int, int]) -> None:
    if partitions:
        owned[topic_id] = partitions


def _moved(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Owned, revoking: Owned
) -> ConsumerMember:
    return member._replace(
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )
