"""A consumer's side of its group: the coordinator, joining, heartbeats, committed offsets."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from semel.client.cluster import GENERAL, GROUP, Cluster
from semel.client.errors import ClientError, RetriableError, UsageError, error_for
from semel.client.settings import ConsumerSettings
from semel.core.client.membership import GroupSettings, Membership, Next, by_topic
from semel.core.client.patience import Deadline
from semel.core.client.types import Node, OffsetAndMetadata, TopicPartition
from semel.wire.errors import ErrorCode
from semel.wire.messages.leave_group import LeaveGroupRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from semel.wire.schema import Message

Partitions = frozenset[TopicPartition]
Listener = Callable[[Partitions], Awaitable[None]]


class ClassicGroup:
    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        assert settings.group_id
        self.cluster = cluster
        self.settings = settings
        try:
            self.membership = Membership(
                GroupSettings(
                    settings.group_id,
                    settings.session_timeout_ms,
                    settings.max_poll_interval_ms,
                    settings.group_instance_id,
                    tuple(settings.strategies),
                )
            )
        except ValueError as error:
            raise UsageError(str(error)) from None
        self.failure: ClientError | None = None
        self.last_poll = 0.0
        self._coordinator: Node | None = None
        # The generation under which positions are held. It outlives the membership: were it reset,
        # a commit by an expelled member would look like one of a group without members.
        self.metadata = self.membership.group_metadata
        self._held: Partitions = frozenset()  # what the consumer reads at the moment
        self._heart: asyncio.Task[None] | None = None
        self._joining: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    @property
    def group_id(self) -> str:
        return self.membership.settings.group_id

    # Joining

    async def ensure_joined(
        self, revoked: Listener, assigned: Listener, deadline: Deadline
    ) -> bool:
        """Joins if need be; False if the time was not enough (call again)."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        membership = self.membership
        while membership.wants_to_join or self._joining is not None:
            if self._joining is None:
                await self._stop_heart()
                # Out of the group, another member may have read on: no position of ours holds.
                expelled = membership.generation < 0
                if self._held and (expelled or not membership.cooperative):
                    await revoked(self._held)
                    self._held = membership.assigned = frozenset()
                self._joining = self._loop.create_task(self._join())
            remaining_s = deadline.remaining_ms(self.cluster.now_ms()) / 1000
            joined, _ = await asyncio.wait({self._joining}, timeout=remaining_s)
            if not joined:
                return False  # it goes on behind the application's back
            task, self._joining = self._joining, None
            task.result()
            after = membership.assigned
            if self._held - after:
                await revoked(self._held - after)
            self._held = after
            self.metadata = membership.group_metadata
            await assigned(after)
        return True

    async def _join(self) -> None:
        """Until it is a member. The others wait for it, whatever the application is doing."""
        attempt = 0
        while (following := await self._join_and_sync()) is not Next.GO_ON:
            if following is Next.FIND:
                self._coordinator = None
            if following in (Next.WAIT, Next.FIND):
                attempt += 1
                await asyncio.sleep(self.cluster.backoff.delay_ms(attempt, random.random()) / 1000)
        self._heart = self._loop.create_task(self._beat())

    async def _join_and_sync(self) -> Next:
        membership = self.membership
        # The broker holds the join back until all members are there, and no longer than this.
        patience = self.cluster.deadline(
            self.settings.max_poll_interval_ms + self.settings.request_timeout_ms
        )
        wait_ms = self.settings.max_poll_interval_ms
        try:
            answer = await self._ask(membership.join_request(), patience, wait_ms)
            following = membership.joined(answer)
            if following is Next.FAIL:
                raise error_for(answer.error_code, f"group {self.group_id!r} refused this member")
            if following is not Next.GO_ON:
                return following
            counts: dict[str, int] = {}
            if membership.leader:
                counts = await self._partition_counts(membership.topics_of_all, patience)
            answer = await self._ask(membership.sync_request(counts), patience, wait_ms)
        except RetriableError:
            return Next.FIND
        following, _ = membership.synced(answer.error_code, bytes(answer.assignment))
        if following is Next.FAIL:
            raise error_for(answer.error_code, f"group {self.group_id!r} gave no assignment")
        return following

    async def _partition_counts(self, topics: Iterable[str], deadline: Deadline) -> dict[str, int]:
        self.cluster.wanted_topics.update(topics)
        await self.cluster.refresh(deadline)
        counts = {topic: self.cluster.metadata.partition_count(topic) for topic in topics}
        return {topic: count for topic, count in counts.items() if count}

    # Heartbeats

    async def _beat(self) -> None:
        """Runs beside the application; whatever it learns takes effect in the next poll."""
        membership = self.membership
        while not membership.wants_to_join:
            await asyncio.sleep(self.settings.heartbeat_interval_ms / 1000)
            idle_ms = (self._loop.time() - self.last_poll) * 1000
            if idle_ms > self.settings.max_poll_interval_ms:
                # The application is stuck: let the others have its partitions.
                await self.leave()
                membership.reset()
                return
            try:
                deadline = self.cluster.deadline(self.settings.session_timeout_ms)
                answer = await self._ask(membership.heartbeat_request(), deadline)
            except RetriableError:
                self._coordinator = None
                continue
            except ClientError as error:
                self.failure = error
                return
            if answer.error_code:
                code = ErrorCode.of(answer.error_code)
                following = membership.refused(code)
                if following is Next.FIND:
                    self._coordinator = None
                elif following is Next.FAIL:
                    self.failure = error_for(code, f"group {self.group_id!r} lost this member")
                    return

    async def _stop_heart(self) -> None:
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.gather(self._heart, return_exceptions=True)
            self._heart = None

    async def leave(self) -> None:
        """Gives the partitions back at once; static members keep their place."""
        membership = self.membership
        if not membership.member_id or self.settings.group_instance_id:
            return

        def request(version: int) -> Message:
            if version < 3:
                return LeaveGroupRequest(group_id=self.group_id, member_id=membership.member_id)
            member = LeaveGroupRequest.MemberIdentity(member_id=membership.member_id)
            return LeaveGroupRequest(group_id=self.group_id, members=[member])

        with suppress(ClientError):  # the session timeout does the same, later
            await self._ask(request, self.cluster.deadline(2_000), of=LeaveGroupRequest)

    async def close(self) -> None:
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
        await self._stop_heart()
        await self.leave()

    # Offsets

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: Deadline
    ) -> None:
        if not offsets:
            return
        metadata = self.metadata
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=metadata.generation_id,
            member_id=metadata.member_id,
            group_instance_id=metadata.group_instance_id,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequest.OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[TopicPartition(topic, index)].offset,
                            committed_leader_epoch=offsets[
                                TopicPartition(topic, index)
                            ].leader_epoch,
                            committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        what = f"offsets of group {self.group_id!r} were not committed"
        await self._until_accepted(
            lambda: self._ask(request, deadline, at_most=9),
            lambda answer: {p.error_code for t in answer.topics for p in t.partitions},
            what,
            deadline,
        )

    async def committed(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's offsets; those held by an open transaction are waited for (KIP-447)."""
        wanted = by_topic(partitions)

        def request(version: int) -> Message:
            if version >= 8:
                topics = [
                    OffsetFetchRequest.OffsetFetchRequestTopics(name=t, partition_indexes=i)
                    for t, i in wanted.items()
                ]
                group = OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id=self.group_id, topics=topics
                )
                return OffsetFetchRequest(groups=[group], require_stable=True)
            plain = [
                OffsetFetchRequest.OffsetFetchRequestTopic(name=t, partition_indexes=i)
                for t, i in wanted.items()
            ]
            stable = version >= 7
            return OffsetFetchRequest(group_id=self.group_id, topics=plain, require_stable=stable)

        answer = await self._until_accepted(
            lambda: self._ask(request, deadline, of=OffsetFetchRequest, at_most=9),
            _fetch_errors,
            f"offsets of group {self.group_id!r} were not read",
            deadline,
        )
        topics = answer.groups[0].topics if answer.groups else answer.topics
        return {
            TopicPartition(topic.name, result.partition_index): OffsetAndMetadata(
                result.committed_offset, result.metadata or "", result.committed_leader_epoch
            )
            for topic in topics
            for result in topic.partitions
            if result.committed_offset >= 0
        }

    async def _until_accepted(
        self,
        ask: Callable[[], Awaitable[Any]],
        errors: Callable[[Any], set[int]],
        what: str,
        deadline: Deadline,
    ) -> Any:
        attempt = 0
        while True:
            answer = await ask()
            codes = {ErrorCode.of(code) for code in errors(answer)} - {ErrorCode.NONE}
            if not codes:
                return answer
            code = next((c for c in codes if not c.retriable), next(iter(codes)))
            if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                self._coordinator = None
            if code in (
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.ILLEGAL_GENERATION,
                ErrorCode.REBALANCE_IN_PROGRESS,
            ):
                self.membership.refused(code)
            attempt += 1
            if not await self.cluster.may_try_again(code, attempt, deadline):
                raise error_for(code, what)

    async def _ask(
        self,
        message: Message | Callable[[int], Message],
        deadline: Deadline,
        wait_ms: float = 0,
        *,
        of: type[Message] | None = None,
        at_most: int = 0x7FFF,
    ) -> Any:
        """Asks the coordinator. Long waits (joins) have a connection of their own."""
        if self._coordinator is None:
            self._coordinator = await self.cluster.find_coordinator(0, self.group_id, deadline)
        return await self.cluster.ask(
            message,
            of=of,
            node=self._coordinator,
            deadline=deadline,
            purpose=GROUP if wait_ms else GENERAL,
            at_most=at_most,
            wait_ms=wait_ms,
        )


def _fetch_errors(answer: OffsetFetchResponse) -> set[int]:
    group = answer.groups[0] if answer.groups else answer
    return {group.error_code, *(p.error_code for t in group.topics for p in t.partitions)}
