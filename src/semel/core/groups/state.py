"""Everything one group coordinator knows, and `apply`, the only way it changes."""

from semel.core.groups.classic.group import ClassicGroup
from semel.core.groups.consumer.group import LEAVE_EPOCH, ConsumerGroup, ConsumerMember
from semel.core.groups.offsets.store import CommittedOffset, OffsetStore
from semel.core.groups.records import (
    ClassicGroupChanged,
    ClassicGroupDeleted,
    ConsumerGroupDeleted,
    CurrentAssignment,
    CurrentAssignmentDeleted,
    GroupEpoch,
    MemberDeleted,
    MemberSubscription,
    MetadataChecked,
    OffsetCommitted,
    OffsetDeleted,
    Record,
    RegexResolved,
    SettingsSeen,
    TargetAssignment,
    TargetEpoch,
    TimerSet,
    TopicsSeen,
    TransactionMarker,
)
from semel.core.groups.settings import GroupSettings
from semel.core.groups.states import MEMBER_MOVES
from semel.core.groups.timers import Timers
from semel.core.groups.topics import Topics


class GroupsState:
    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.groups: dict[str, ClassicGroup | ConsumerGroup] = {}
        self.offsets = OffsetStore()
        self.timers = Timers()
        self.topics = Topics()
        self.kept_bytes = 0  # of the members of all groups
        self._order = 0

    def apply(self, record: Record) -> None:
        match record:
            case OffsetCommitted():
                self._apply_offset(record)
            case TimerSet(key, deadline):
                if deadline is None:
                    self.timers.cancel(key)
                else:
                    self.timers.set(key, deadline)
            case ClassicGroupChanged(group):
                self.kept_bytes += group.kept_bytes - self._kept_of(group.group_id)
                self.groups[group.group_id] = group
            case ClassicGroupDeleted(group_id):
                if isinstance(self.groups.get(group_id), ClassicGroup):
                    self.kept_bytes -= self._kept_of(group_id)
                    del self.groups[group_id]
            case OffsetDeleted(group_id, topic, partition):
                self.offsets.delete(group_id, topic, partition)
            case TransactionMarker(producer_id, commit):
                self.offsets.end(producer_id, commit)
            case TopicsSeen(topics):
                self.topics = topics
            case SettingsSeen(settings):
                self.settings = settings
            case _:
                before = self._kept_of(record.group_id)
                self._apply_consumer(record)
                self.kept_bytes += self._kept_of(record.group_id) - before

    def _kept_of(self, group_id: str) -> int:
        group = self.groups.get(group_id)
        return 0 if group is None else group.kept_bytes

    def _apply_offset(self, record: OffsetCommitted) -> None:
        self._order += 1
        # Offsets need a group to belong to; without members it is a simple one.
        if record.group_id not in self.groups:
            self.groups[record.group_id] = ClassicGroup(
                record.group_id, state_since_ms=record.commit_ms
            )
        offset = CommittedOffset(
            record.offset,
            record.leader_epoch,
            record.metadata,
            record.commit_ms,
            record.expire_ms,
            record.topic_id,
            self._order,
        )
        if record.producer_id < 0:
            self.offsets.commit(record.group_id, record.topic, record.partition, offset)
        else:
            self.offsets.hold(
                record.producer_id, record.group_id, record.topic, record.partition, offset
            )

    def _apply_consumer(self, record: Record) -> None:
        match record:
            case GroupEpoch(group_id, epoch, metadata_hash):
                group = self._consumer_group(group_id)
                group.epoch, group.metadata_hash = epoch, metadata_hash
            case MemberSubscription(group_id, member):
                self._describe_member(self._consumer_group(group_id), member)
            case CurrentAssignment(group_id, member):
                self._move_member(self._consumer_group(group_id), member)
            case TargetAssignment(group_id, member_id, partitions) if partitions is not None:
                self._consumer_group(group_id).target[member_id] = partitions
            case TargetEpoch(group_id, epoch, computed_ms) if epoch is not None:
                group = self._consumer_group(group_id)
                group.assignment_epoch, group.assignment_ms = epoch, computed_ms
            case RegexResolved(group_id, regex, resolved) if resolved is not None:
                self._consumer_group(group_id).regexes[regex] = resolved
            case _:
                self._apply_tombstone(record)

    def _apply_tombstone(self, record: Record) -> None:
        """Compaction leaves tombstones of things we have never seen: those mean nothing."""
        assert not isinstance(record, (TimerSet, TopicsSeen, SettingsSeen, TransactionMarker))
        group = self.groups.get(getattr(record, "group_id", ""))
        if not isinstance(group, ConsumerGroup):
            return
        match record:
            case ConsumerGroupDeleted(group_id):
                del self.groups[group_id]
            case MemberDeleted(_, member_id):
                group.remove(member_id)
            case CurrentAssignmentDeleted(_, member_id) if member_id in group.members:
                member = group.members[member_id]
                group.put(
                    member._replace(
                        epoch=LEAVE_EPOCH,
                        previous_epoch=LEAVE_EPOCH,
                        assigned={},
                        revoking={},
                    )
                )
            case TargetAssignment(_, member_id):
                group.target.pop(member_id, None)
            case TargetEpoch():
                group.assignment_epoch = -1
            case RegexResolved(_, regex):
                group.regexes.pop(regex, None)
            case MetadataChecked(_, version):
                group.checked_topics_version = version

    def _consumer_group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            # A simple group stands only for offsets that were replayed before this record.
            assert group is None or group.is_simple, f"{group_id} is a classic group"
            group = self.groups[group_id] = ConsumerGroup(group_id)
        return group

    @staticmethod
    def _describe_member(group: ConsumerGroup, said: ConsumerMember) -> None:
        known = group.members.get(said.member_id, ConsumerMember(said.member_id))
        group.put(
            said._replace(
                epoch=known.epoch,
                previous_epoch=known.previous_epoch,
                state=known.state,
                assigned=known.assigned,
                revoking=known.revoking,
            )
        )

    @staticmethod
    def _move_member(group: ConsumerGroup, moved: ConsumerMember) -> None:
        known = group.members.get(moved.member_id, ConsumerMember(moved.member_id))
        assert moved.state in MEMBER_MOVES[known.state], f"{known.state!r} -> {moved.state!r}"
        group.put(
            known._replace(
                epoch=moved.epoch,
                previous_epoch=moved.previous_epoch,
                state=moved.state,
                assigned=moved.assigned,
                revoking=moved.revoking,
            )
        )
