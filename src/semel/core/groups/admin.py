"""ListGroups, DescribeGroups, ConsumerGroupDescribe, DeleteGroups."""

from collections.abc import Mapping
from uuid import UUID

from semel.core.groups.classic.group import CONSUMER_PROTOCOL, ClassicGroup
from semel.core.groups.commands import (
    ConsumerGroupDescribe,
    DeleteGroup,
    DescribeGroup,
    ListGroups,
)
from semel.core.groups.consumer.group import ConsumerGroup, ConsumerMember
from semel.core.groups.draft import Draft
from semel.core.groups.migration import migration
from semel.core.groups.offsets import requests as offsets
from semel.core.groups.replies import (
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedGroup,
    DescribedMember,
    ErrorReply,
    ListedGroup,
    RequestRefused,
)
from semel.core.groups.states import ClassicState
from semel.wire.errors import ErrorCode


def list_groups(draft: Draft, command: ListGroups) -> tuple[ListedGroup, ...]:
    states = {state.strip().lower() for state in command.states}
    types = {kind.strip().lower() for kind in command.types}
    listed = (_listed(group) for group in draft.state.groups.values())
    return tuple(
        group
        for group in listed
        if (not states or group.state.lower() in states)
        and (not types or group.type.lower() in types)
    )


def _listed(group: ClassicGroup | ConsumerGroup) -> ListedGroup:
    if isinstance(group, ConsumerGroup):
        return ListedGroup(group.group_id, CONSUMER_PROTOCOL, group.state, "consumer")
    return ListedGroup(group.group_id, group.protocol_type or "", group.state, "classic")


def describe(draft: Draft, command: DescribeGroup) -> DescribedGroup:
    group = draft.state.groups.get(command.group_id)
    if not isinstance(group, ClassicGroup):
        reason = "not found" if group is None else "is not a classic group"
        return DescribedGroup(
            ErrorCode.GROUP_ID_NOT_FOUND,
            command.group_id,
            ClassicState.DEAD,
            f"Group {command.group_id} {reason}.",
        )
    # Metadata is shown only while one protocol is agreed on.
    protocol_name = group.protocol_name if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        ErrorCode.NONE,
        command.group_id,
        group.state,
        None,
        group.protocol_type or "",
        protocol_name or "",
        tuple(
            DescribedMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(protocol_name) if protocol_name is not None else b"",
                member.assignment,
            )
            for member in group.members.values()
        ),
    )


def describe_consumer_group(draft: Draft, command: ConsumerGroupDescribe) -> DescribedConsumerGroup:
    group = draft.state.groups.get(command.group_id)
    if not isinstance(group, ConsumerGroup):
        reason = "not found" if group is None else "is not a consumer group"
        return DescribedConsumerGroup(
            ErrorCode.GROUP_ID_NOT_FOUND, command.group_id, f"Group {command.group_id} {reason}."
        )
    members = group.members.values()
    return DescribedConsumerGroup(
        ErrorCode.NONE,
        command.group_id,
        None,
        group.state,
        group.epoch,
        group.assignment_epoch,
        group.preferred_assignor(members) or draft.settings.consumer_assignors[0],
        tuple(_described(group, member) for member in members),
    )


def _described(group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumer:
    """What it still has to give up counts as its own: it is responsible for it until then."""
    assignment: dict[UUID, list[int]] = {}
    for owned in (member.assigned, member.revoking):
        for topic_id, partitions in owned.items():
            assignment.setdefault(topic_id, []).extend(sorted(partitions))
    return DescribedConsumer(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.topic_names)),
        member.topic_regex,
        assignment,
        _lists(group.target_of(member.member_id)),
        member.classic is not None,
    )


def _lists(assignment: Mapping[UUID, frozenset[int]]) -> dict[UUID, list[int]]:
    return {topic_id: sorted(partitions) for topic_id, partitions in assignment.items()}


def delete(draft: Draft, command: DeleteGroup) -> ErrorReply:
    group = draft.state.groups.get(command.group_id)
    if group is None:
        raise RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty:
        raise RequestRefused(ErrorCode.NON_EMPTY_GROUP)
    offsets.delete_all(draft, command.group_id)
    migration.write_tombstones(draft, group)
    return ErrorReply()
