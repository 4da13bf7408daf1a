"""Subscriptions by regular expression: when to match them against the topics, and what it changes.

Matching needs the member's rights, so the machine orders it (`ResolveRegexes`) and gets the result
back as a command. Kafka waits ten seconds between refreshes; matching here is cheap, so new
expressions and new topics are looked at with the next heartbeat.
"""

from typing import NamedTuple

from semel.core.groups.commands import RegexesResolved
from semel.core.groups.consumer.group import ConsumerGroup, ConsumerMember, ResolvedRegex
from semel.core.groups.draft import Draft
from semel.core.groups.records import GroupEpoch, MetadataChecked, RegexResolved
from semel.core.groups.replies import ErrorReply, RequestRefused, ResolveRegexes
from semel.core.patterns import InvalidPattern, Pattern, compile_pattern
from semel.wire.errors import ErrorCode


class RegexChange(NamedTuple):
    is_changed: bool
    is_resolved: bool  # the topics of the new one (or that there is none) are known already


NO_CHANGE = RegexChange(False, False)


def update_regexes(
    draft: Draft, group: ConsumerGroup, known: ConsumerMember, member: ConsumerMember
) -> RegexChange:
    old, new = known.topic_regex or "", member.topic_regex or ""
    is_changed = old != new
    if not (is_changed or new or group.regex_members):
        return NO_CHANGE
    if is_changed and old and group.subscribers_of(old) == 1:
        draft.keep(RegexResolved(group.group_id, old, None))
    if is_changed and new and group.subscribers_of(new) == 0:
        compile_regex(new)
    regexes = group.subscribed_regexes()
    if is_changed and group.subscribers_of(old) == 1:
        regexes.discard(old)
    if new:
        regexes.add(new)
    if regexes and _must_resolve(draft, group, regexes):
        draft.order(ResolveRegexes(group.group_id, member.member_id, frozenset(regexes)))
    return RegexChange(is_changed, is_changed and (not new or new in group.regexes))


def _must_resolve(draft: Draft, group: ConsumerGroup, regexes: set[str]) -> bool:
    if any(regex not in group.regexes for regex in regexes):
        return True
    oldest = min(group.regexes.values(), key=lambda resolved: resolved.resolved_ms)
    interval_ms = draft.settings.consumer_regex_refresh_interval_ms
    return (
        oldest.topics_version < draft.state.topics.created_version
        or draft.now_ms > oldest.resolved_ms + interval_ms
    )


def compile_regex(regex: str) -> Pattern:
    try:
        return compile_pattern(regex)
    except InvalidPattern as error:
        raise RequestRefused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from error


def resolved(draft: Draft, command: RegexesResolved) -> ErrorReply:
    group = draft.state.groups.get(command.group_id)
    if not isinstance(group, ConsumerGroup):
        return ErrorReply()
    must_bump = False
    after = dict(group.regexes)
    for regex, topics in command.topics_by_regex:
        if group.subscribers_of(regex) == 0:
            continue
        known = group.regexes.get(regex)
        must_bump = must_bump or topics != (known.topics if known else frozenset())
        after[regex] = ResolvedRegex(topics, command.topics_version, draft.now_ms)
        draft.keep(RegexResolved(command.group_id, regex, after[regex]))
    names = {name for member in group.members.values() for name in member.topic_names}
    for one in after.values():
        names |= one.topics
    topics_now = draft.state.topics
    metadata_hash = topics_now.fingerprint(names)
    if must_bump or metadata_hash != group.metadata_hash:
        draft.keep(
            GroupEpoch(command.group_id, group.epoch + 1, metadata_hash),
            MetadataChecked(command.group_id, topics_now.version),
        )
    return ErrorReply()
