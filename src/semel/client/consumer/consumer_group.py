"""A member of a consumer group of the newer protocol (KIP-848): heartbeats carry everything.

One task sends heartbeats, whatever the application does. What the broker wants is carried out in
`poll`, where the application's listeners may run; the heartbeat after that tells the broker that it
is done.
"""

import asyncio
import base64
import random
import uuid
from contextlib import suppress

from semel.client.cluster import Cluster
from semel.client.consumer.group import GroupClient, Listeners
from semel.client.errors import error_for
from semel.client.machines.consumer_membership import (
    ConsumerMembership,
    MemberSettings,
    Phase,
    Plan,
    TopicIdPartition,
)
from semel.client.machines.membership import Next
from semel.client.machines.patience import Deadline
from semel.client.machines.subscription import Subscription
from semel.client.machines.types import GroupMetadata, TopicPartition
from semel.client.settings import ConsumerSettings
from semel.errors import FatalError, RetriableError, SemelError
from semel.wire.errors import ErrorCode
from semel.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from semel.wire.schema import Message

_PATTERNS_SINCE = 1


class ConsumerGroupClient(GroupClient):
    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        super().__init__(cluster, settings)
        member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.membership = ConsumerMembership(
            MemberSettings(
                self.group_id,
                settings.max_poll_interval_ms,
                settings.group_instance_id,
                settings.client_rack or None,
                settings.group_remote_assignor,
            ),
            member_id,
        )
        self._held: dict[TopicIdPartition, TopicPartition] = {}  # what the consumer reads
        self._heartbeats: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()  # the next heartbeat need not wait for its time
        self._news = asyncio.Event()  # the phase or the target may have changed
        self._next_beat = 0.0
        self._next_naming = 0.0
        self._needs_pattern = False

    @property
    def metadata(self) -> GroupMetadata:
        return self.membership.metadata

    def subscribe(self, subscription: Subscription) -> None:
        self._needs_pattern = subscription.pattern is not None
        self.cluster.wanted_topics.update(subscription.topics)
        self.membership.subscribe(subscription)
        self._wake.set()

    # Following

    async def ensure_joined(self, listeners: Listeners, deadline: Deadline) -> bool:
        self._raise_failure()
        membership = self.membership
        if membership.phase is Phase.LEFT:
            membership.dropped()
        if self._heartbeats is None:
            self._heartbeats = self._loop.create_task(self._send_heartbeats())
        while membership.phase is not Phase.LEFT:
            if self._heartbeats.done():
                self._heartbeats.result()  # it never ends by itself: say why it did
            if membership.phase is Phase.EXPELLED:
                await self._drop(listeners)
            plan = membership.plan
            if not await self._follow(plan, listeners, deadline) and self._is_member:
                return True
            if membership.phase is Phase.JOINING and not await self._heard(deadline):
                return False
            self._raise_failure()
        return False

    @property
    def _is_member(self) -> bool:
        return self.membership.phase is Phase.MEMBER

    async def _heard(self, deadline: Deadline) -> bool:
        self._news.clear()
        try:
            async with asyncio.timeout(deadline.remaining_ms(self.cluster.now_ms()) / 1000):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def _drop(self, listeners: Listeners) -> None:
        """Out of the group, another member may have read on: no position of ours holds."""
        held, self._held = frozenset(self._held.values()), {}
        self.life += 1
        if held:
            await listeners.lost(held)
        self.membership.dropped()
        self._wake.set()

    async def _follow(self, plan: Plan, listeners: Listeners, deadline: Deadline) -> bool:
        """Carries out what can be; False if there was nothing to do."""
        membership = self.membership
        revoke = plan.revoke & self._held.keys()
        take = await self._named(plan, deadline)
        if revoke:
            await listeners.revoked(frozenset(self._held[each] for each in revoke))
            for each in revoke:
                self._held.pop(each, None)
        membership.gave_up(plan.revoke)
        if take and self._is_member:
            self._held |= take
            await listeners.assigned(frozenset(self._held.values()))
            membership.took(take)
        if plan.revoke or take:
            self._wake.set()
        return bool(plan.revoke or take)

    async def _named(
        self, plan: Plan, deadline: Deadline
    ) -> dict[TopicIdPartition, TopicPartition]:
        """Assignments come by topic id. A topic that is not known yet is asked for and, if the
        broker does not know it yet either, taken later."""
        names = self.cluster.metadata.names
        unknown = {each.topic_id for each in plan.take} - names.keys()
        if unknown and self._loop.time() >= self._next_naming:
            self._next_naming = self._loop.time() + self.settings.retry_backoff_ms / 1000
            self.cluster.wanted_ids |= unknown
            with suppress(RetriableError):
                await self.cluster.refresh(deadline)
        return {
            each: TopicPartition(names[each.topic_id], each.partition)
            for each in plan.take
            if each.topic_id in names
        }

    # Heartbeats

    async def _send_heartbeats(self) -> None:
        attempt = 0
        while True:
            await self._until_due()
            if self._idle_ms() >= self.settings.max_poll_interval_ms:
                # The application is stuck: let the others have its partitions.
                await self._send_leave()
                self.membership.expelled()
                continue
            following = await self._heartbeat()
            self._next_beat = self._loop.time() + self.membership.interval_ms / 1000
            self._news.set()
            self.on_news()
            if following is Next.FIND:
                self._coordinator = None
            if following in (Next.FIND, Next.WAIT):
                attempt += 1
                await asyncio.sleep(self.cluster.backoff.delay_ms(attempt, random.random()) / 1000)
            else:
                attempt = 0

    async def _until_due(self) -> None:
        """Until the next heartbeat; out of the group, until a poll brings it back."""
        while True:
            self._wake.clear()
            if self.membership.has_news:
                return
            stuck_at = self.last_poll + self.settings.max_poll_interval_ms / 1000
            due_at = min(self._next_beat, stuck_at) if self._is_member else None
            try:
                async with asyncio.timeout_at(due_at):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def _heartbeat(self) -> Next:
        membership = self.membership
        deadline = self.cluster.deadline(self.settings.request_timeout_ms)
        try:
            answer = await self._ask(self._request, deadline, of=ConsumerGroupHeartbeatRequest)
        except RetriableError:
            membership.lost()
            return Next.FIND
        except SemelError as error:
            self._fail(error)
            return Next.FAIL
        following = membership.answered(answer)
        if following is Next.FAIL:
            what = f"group {self.group_id!r} refused this member"
            self._fail(error_for(answer.error_code, what, why=answer.error_message))
        return following

    def _request(self, version: int) -> Message:
        if self._needs_pattern and version < _PATTERNS_SINCE:
            raise FatalError(
                "this broker matches no patterns (ConsumerGroupHeartbeat version 1): subscribe to "
                "topics by name, or use group_protocol='classic'",
                ErrorCode.UNSUPPORTED_VERSION,
            )
        return self.membership.heartbeat()

    def _fail(self, error: SemelError) -> None:
        """For the next poll to raise; a poll after that tries to join again."""
        if error.code is ErrorCode.UNSUPPORTED_VERSION and not self._needs_pattern:
            error = FatalError(
                "the cluster does not speak the newer group protocol (KIP-848): "
                "use group_protocol='classic', or a broker that does (Kafka 4, Semel)",
                error.code,
            )
        self.failure = error
        self.membership.expelled()

    async def leave(self) -> None:
        """Static members keep their place until their session ends."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
            self._heartbeats = None
        await self._send_leave()
        if self.membership.phase is not Phase.LEFT:
            self.membership.left()
        self._held = {}
        self.life += 1

    async def _send_leave(self) -> None:
        request = self.membership.leave_request()
        if request is not None:
            with suppress(SemelError):  # the session timeout does the same, later
                await self._ask(request, self.cluster.deadline(2_000))

    # Offsets

    def _offset_reader(self) -> tuple[str | None, int]:
        who = self.metadata
        return (who.member_id, who.generation_id) if who.member_id else (None, -1)

    def _hear(self, code: ErrorCode) -> bool:
        """A stale epoch is renewed by the heartbeat under way; a lost membership by nothing."""
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            self._next_beat = 0.0
            self._wake.set()
            return self._is_member
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            self.membership.expelled()
            self.on_news()
        return code.retriable
