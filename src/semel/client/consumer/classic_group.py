"""A member of a classic group: it joins, one member divides the partitions, all send heartbeats."""

import asyncio
import random
import re
from collections.abc import Iterable
from contextlib import suppress

from semel.client.cluster import Cluster
from semel.client.consumer.group import GroupClient, Listeners, Partitions
from semel.client.errors import error_for
from semel.client.machines.membership import ClassicMemberSettings, Membership, Next
from semel.client.machines.patience import Deadline
from semel.client.machines.subscription import Subscription
from semel.client.machines.types import GroupMetadata
from semel.client.settings import ConsumerSettings
from semel.errors import RetriableError, SemelError, UsageError
from semel.wire.errors import ErrorCode
from semel.wire.messages.leave_group import LeaveGroupRequest
from semel.wire.schema import Message

# What a coordinator says to a member whose group has moved on.
_MOVED_ON = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
)


class ClassicGroupClient(GroupClient):
    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        super().__init__(cluster, settings)
        try:
            self.membership = Membership(
                ClassicMemberSettings(
                    self.group_id,
                    settings.session_timeout_ms,
                    settings.max_poll_interval_ms,
                    settings.group_instance_id,
                    tuple(settings.strategies),
                )
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        # The generation under which positions are held. It outlives the membership: were it reset,
        # a commit by an expelled member would look like one of a group without members.
        self._metadata = self.membership.group_metadata
        self._subscription = Subscription()
        self._held: Partitions = frozenset()  # what the consumer reads at the moment
        self._divided: dict[str, int] = {}  # as leader: the partition counts it went by
        self._looked_at: float | None = None  # the metadata that was compared with them
        self._heartbeats: asyncio.Task[None] | None = None
        self._joining: asyncio.Task[None] | None = None

    @property
    def metadata(self) -> GroupMetadata:
        return self._metadata

    def subscribe(self, subscription: Subscription) -> None:
        try:
            re.compile(subscription.pattern or "")
        except re.error as error:
            raise UsageError(f"the pattern is no regular expression: {error}") from None
        self._subscription = subscription
        self._looked_at = None
        self.cluster.wanted_topics.update(subscription.topics)
        if subscription.pattern is not None and not self.cluster.wants_all_topics:
            self.cluster.wants_all_topics = True
            self.cluster.metadata.expire()

    # Joining

    async def ensure_joined(self, listeners: Listeners, deadline: Deadline) -> bool:
        self._raise_failure()
        membership = self.membership
        self._look_at_topics()
        while membership.wants_to_join or self._joining is not None:
            if self._joining is None:
                await self._stop_heartbeats()
                await self._give_up_partitions(listeners)
                self._joining = self._loop.create_task(self._join())
            remaining_s = deadline.remaining_ms(self.cluster.now_ms()) / 1000
            joined, _ = await asyncio.wait({self._joining}, timeout=remaining_s)
            if not joined:
                return False  # it goes on while the application does something else
            task, self._joining = self._joining, None
            task.result()
            after = membership.assigned
            if self._held - after:
                await listeners.revoked(self._held - after)
            self._held = after
            self._metadata = membership.group_metadata
            self.life += 1
            await listeners.assigned(after)
        return True

    async def _give_up_partitions(self, listeners: Listeners) -> None:
        """Before a rebalance: all of it, unless every strategy leaves members what they have."""
        membership = self.membership
        expelled = membership.generation < 0
        if self._held and (expelled or not membership.cooperative):
            # Out of the group, another member may have read on: no position of ours holds.
            await (listeners.lost if expelled else listeners.revoked)(self._held)
            self._held = membership.assigned = frozenset()

    def _look_at_topics(self) -> None:
        """New topics that match and new partitions are reasons to divide anew."""
        metadata = self.cluster.metadata
        if metadata.updated_ms == self._looked_at:
            return
        self._looked_at = metadata.updated_ms
        self.membership.subscribe(self._subscription.matching(metadata.topics.values()))
        counts = {t: metadata.partition_count(t) for t in self._divided}
        if any(counts[topic] > known for topic, known in self._divided.items()):
            self.membership.wants_to_join = True

    async def _join(self) -> None:
        """Until it is a member. The others wait for it, whatever the application is doing."""
        attempt = 0
        while (following := await self._join_and_sync()) is not Next.GO_ON:
            if following is Next.FIND:
                self._coordinator = None
            if following in (Next.WAIT, Next.FIND):
                attempt += 1
                await asyncio.sleep(self.cluster.backoff.delay_ms(attempt, random.random()) / 1000)
        self._heartbeats = self._loop.create_task(self._send_heartbeats())

    async def _join_and_sync(self) -> Next:
        membership = self.membership
        # The broker holds the join back until all members are there, and no longer than this.
        patience = self.cluster.deadline(
            self.settings.max_poll_interval_ms + self.settings.request_timeout_ms
        )
        wait_ms = self.settings.max_poll_interval_ms
        try:
            if self.cluster.wants_all_topics:  # a pattern should match what is there by now
                await self.cluster.refresh(patience)
                self._look_at_topics()
            answer = await self._ask(membership.join_request(), patience, wait_ms)
            following = membership.joined(answer)
            if following is Next.FAIL:
                raise error_for(answer.error_code, f"group {self.group_id!r} refused this member")
            if following is not Next.GO_ON:
                return following
            self._divided = {}
            if membership.leader:
                self._divided = await self._partition_counts(membership.topics_of_all, patience)
            known = {topic: count for topic, count in self._divided.items() if count}
            answer = await self._ask(membership.sync_request(known), patience, wait_ms)
        except RetriableError:
            return Next.FIND
        following, _ = membership.synced(answer.error_code, bytes(answer.assignment))
        if following is Next.FAIL:
            raise error_for(answer.error_code, f"group {self.group_id!r} gave no assignment")
        return following

    async def _partition_counts(self, topics: Iterable[str], deadline: Deadline) -> dict[str, int]:
        self.cluster.wanted_topics.update(topics)
        await self.cluster.refresh(deadline)
        return {topic: self.cluster.metadata.partition_count(topic) for topic in topics}

    # Staying and leaving

    async def _send_heartbeats(self) -> None:
        """Runs beside the application; whatever it learns takes effect in the next poll.

        Also while the group waits for this member to join again: an application that is busy is
        not dead, and one that is stuck must not hold the others up.
        """
        membership = self.membership
        while membership.generation >= 0:
            await asyncio.sleep(self.settings.heartbeat_interval_ms / 1000)
            if self._idle_ms() > self.settings.max_poll_interval_ms:
                # The application is stuck: let the others have its partitions.
                await self._send_leave()
                membership.reset()
                break
            try:
                deadline = self.cluster.deadline(self.settings.session_timeout_ms)
                answer = await self._ask(membership.heartbeat_request(), deadline)
            except RetriableError:
                self._coordinator = None
                continue
            except SemelError as error:
                self.failure = error
                membership.reset()
                break
            if answer.error_code:
                code = ErrorCode.of(answer.error_code)
                following = membership.refused(code)
                if following is Next.FIND:
                    self._coordinator = None
                elif following is Next.FAIL:
                    self.failure = error_for(code, f"group {self.group_id!r} lost this member")
                    membership.reset()
            if membership.wants_to_join:
                self.on_news()
        self.on_news()

    async def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None

    async def leave(self) -> None:
        """Static members keep their place until their session ends."""
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
            self._joining = None
        await self._stop_heartbeats()
        await self._send_leave()
        self.membership.reset()
        self._held = frozenset()
        self._metadata = GroupMetadata(self.group_id)
        self.life += 1

    async def _send_leave(self) -> None:
        membership = self.membership
        if not membership.member_id or self.settings.group_instance_id:
            return

        def request(version: int) -> Message:
            if version < 3:
                return LeaveGroupRequest(group_id=self.group_id, member_id=membership.member_id)
            member = LeaveGroupRequest.MemberIdentity(member_id=membership.member_id)
            return LeaveGroupRequest(group_id=self.group_id, members=[member])

        with suppress(SemelError):  # the session timeout does the same, later
            await self._ask(request, self.cluster.deadline(2_000), of=LeaveGroupRequest)

    def _hear(self, code: ErrorCode) -> bool:
        if code in _MOVED_ON:
            self.membership.refused(code)
        return code.retriable
