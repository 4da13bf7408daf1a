"""A consumer's group, as both protocols have it: the coordinator, and committed offsets."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple

from semel.client.cluster import GENERAL, GROUP, Cluster
from semel.client.errors import error_for
from semel.client.machines.membership import by_topic
from semel.client.machines.patience import Deadline
from semel.client.machines.subscription import Subscription
from semel.client.machines.types import GroupMetadata, Node, OffsetAndMetadata, TopicPartition
from semel.client.settings import ConsumerSettings
from semel.errors import SemelError
from semel.wire.errors import ErrorCode
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from semel.wire.schema import Message

Partitions = frozenset[TopicPartition]
Listener = Callable[[Partitions], Awaitable[None]]

_NAMES_UP_TO = 9  # from version 10 on, offsets are committed and fetched by topic id


class Listeners(NamedTuple):
    """What the consumer does when its partitions change."""

    revoked: Listener  # still ours: the last moment to commit
    lost: Listener  # another's by now: nothing of them can be committed
    assigned: Listener  # called with all that are ours now


class GroupClient(ABC):
    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        assert settings.group_id
        self.cluster = cluster
        self.settings = settings
        self.group_id = settings.group_id
        self.last_poll = 0.0
        self.failure: SemelError | None = None  # of a background task: the next poll raises it
        self.on_news: Callable[[], None] = lambda: None  # a waiting poll should look again
        # Grows when positions become worthless: what was read before is not committed after.
        self.life = 0
        self._coordinator: Node | None = None
        self._loop = asyncio.get_running_loop()

    @property
    @abstractmethod
    def metadata(self) -> GroupMetadata:
        """Under whose name, and as of when, positions are held."""

    @abstractmethod
    def subscribe(self, subscription: Subscription) -> None: ...

    @abstractmethod
    async def ensure_joined(self, listeners: Listeners, deadline: Deadline) -> bool:
        """Joins if need be and follows what the group wants; False if the time was not enough."""

    @abstractmethod
    async def leave(self) -> None:
        """Gives the partitions back. `subscribe` and `ensure_joined` come back."""

    def _raise_failure(self) -> None:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    def _idle_ms(self) -> float:
        return (self._loop.time() - self.last_poll) * 1000

    # Offsets

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline: Deadline
    ) -> None:
        if not offsets:
            return
        life = self.life
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    _committed(index, offsets[TopicPartition(topic, index)]) for index in indexes
                ],
            )
            for topic, indexes in by_topic(offsets).items()
        ]
        what = f"offsets of group {self.group_id!r} were not committed"

        async def ask() -> Any:
            if self.life != life:
                raise error_for(ErrorCode.ILLEGAL_GENERATION, what)
            who = self.metadata
            request = OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=who.generation_id,
                member_id=who.member_id,
                group_instance_id=who.group_instance_id,
                topics=topics,
            )
            return await self._ask(request, deadline, at_most=_NAMES_UP_TO)

        await self._until_accepted(ask, _commit_errors, what, deadline)

    async def committed(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's offsets; those held by an open transaction are waited for (KIP-447)."""
        wanted = by_topic(partitions)

        def request(version: int) -> Message:
            return self._offset_fetch(wanted, version)

        answer = await self._until_accepted(
            lambda: self._ask(request, deadline, of=OffsetFetchRequest, at_most=_NAMES_UP_TO),
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

    def _offset_fetch(self, wanted: Mapping[str, list[int]], version: int) -> OffsetFetchRequest:
        if version < 8:
            plain = [
                OffsetFetchRequest.OffsetFetchRequestTopic(name=t, partition_indexes=i)
                for t, i in wanted.items()
            ]
            stable = version >= 7
            return OffsetFetchRequest(group_id=self.group_id, topics=plain, require_stable=stable)
        member_id, member_epoch = self._offset_reader()
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=self.group_id,
            member_id=member_id,
            member_epoch=member_epoch,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopics(name=t, partition_indexes=i)
                for t, i in wanted.items()
            ],
        )
        return OffsetFetchRequest(groups=[group], require_stable=True)

    def _offset_reader(self) -> tuple[str | None, int]:
        """Who reads offsets: only members of consumer groups say it."""
        return None, -1

    def _hear(self, code: ErrorCode) -> bool:
        """An error of the coordinator about offsets; True if the same may work in a moment."""
        return code.retriable

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
            attempt += 1
            if not self._hear(code) or not await self.cluster.wait_to_retry(attempt, deadline):
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


def _committed(
    index: int, offset: OffsetAndMetadata
) -> OffsetCommitRequest.OffsetCommitRequestPartition:
    return OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def _commit_errors(answer: Any) -> set[int]:
    return {p.error_code for t in answer.topics for p in t.partitions}


def _fetch_errors(answer: OffsetFetchResponse) -> set[int]:
    group = answer.groups[0] if answer.groups else answer
    return {group.error_code, *(p.error_code for t in group.topics for p in t.partitions)}
