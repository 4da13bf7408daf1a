"""Where a consumer stands: positions are found, and checked when a partition's leader changed.

Found from the group's committed offsets, else from where `auto_offset_reset` says. Checked by
asking the new leader where the epoch of the last record read has ended (KIP-320): if that is before
our position, records that we have read are gone from the log.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from semel.client.cluster import Cluster
from semel.client.consumer.group import GroupClient
from semel.client.errors import error_for
from semel.client.machines.fetching import (
    EARLIEST,
    LATEST,
    EpochEndOffset,
    TopicPartitionState,
    Truncation,
    look_for_truncation,
)
from semel.client.machines.membership import by_topic
from semel.client.machines.patience import Deadline
from semel.client.machines.types import Node, TopicPartition
from semel.client.offsets import list_offsets
from semel.client.settings import ConsumerSettings
from semel.errors import AbortableError, FatalError, RetriableError, SemelError, TruncatedError
from semel.wire.errors import ErrorCode
from semel.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

_RESETS = {"earliest": EARLIEST, "latest": LATEST}
log = logging.getLogger("semel.client")


class Positions:
    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        states: dict[TopicPartition, TopicPartitionState],
        group: GroupClient | None,
        on_news: Callable[[], None],
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.states = states
        self._group = group
        self._on_news = on_news
        self._task: asyncio.Task[None] | None = None
        self._failure: SemelError | None = None
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def start_what_is_due(self) -> None:
        """Starts what is to be done about positions, beside the application; never waits."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._task is None and any(
            self._is_unknown_or_unchecked(state) for state in self.states.values()
        ):
            self._task = self._loop.create_task(self._find_and_check())

    async def settle(self, partition: TopicPartition, deadline: Deadline) -> None:
        """Waits until the partition has a position."""
        while (state := self.states.get(partition)) is not None and state.position < 0:
            self.start_what_is_due()
            if self._task is None:
                return
            remaining_s = deadline.remaining_ms(self.cluster.now_ms()) / 1000
            done, _ = await asyncio.wait({self._task}, timeout=remaining_s)
            if not done:
                raise RetriableError(f"the position of {partition} was not found in time")

    def lost(self, state: TopicPartitionState) -> None:
        """There is no offset to go on from, or the one there was is not in the log."""
        reset = _RESETS.get(self.settings.auto_offset_reset)
        if reset is None:
            raise FatalError(
                f"{state.partition} has no offset to start from, and auto_offset_reset is none: "
                "seek to one",
                ErrorCode.OFFSET_OUT_OF_RANGE,
            )
        state.lose_position(reset)

    def is_doubtful(self, state: TopicPartitionState) -> bool:
        return state.is_doubtful(self.cluster.metadata.leader_epoch(state.partition))

    def _is_unknown_or_unchecked(self, state: TopicPartitionState) -> bool:
        return state.position < 0 or self.is_doubtful(state)

    async def _find_and_check(self) -> None:
        try:
            await self._start_from_committed()
            await self._reset()
            await self._check()
        except AbortableError:
            pass  # no longer a member: the next poll drops these partitions
        except RetriableError:
            await asyncio.sleep(self.settings.retry_backoff_ms / 1000)
        except SemelError as error:
            self._failure = error
        finally:
            self._task = None
            self._on_news()

    # Finding

    async def _start_from_committed(self) -> None:
        unknown = [s for s in self.states.values() if s.position < 0 and s.reset is None]
        if unknown and self._group is not None:
            committed = await self._group.committed(
                [state.partition for state in unknown], self.cluster.deadline()
            )
            for state in unknown:
                if self._is_unset(state) and (found := committed.get(state.partition)) is not None:
                    state.seek(found.offset, found.leader_epoch)
        for state in unknown:
            if self._is_unset(state):
                self.lost(state)

    def _is_unset(self, state: TopicPartitionState) -> bool:
        """Nobody has sought meanwhile, and it is still ours."""
        ours = self.states.get(state.partition) is state
        return ours and state.position < 0 and state.reset is None

    async def _reset(self) -> None:
        resets = {s.partition: s.reset for s in self.states.values() if s.reset is not None}
        if not resets:
            return
        offsets = await list_offsets(
            self.cluster,
            {partition: reset.timestamp for partition, reset in resets.items()},
            self.settings.isolation_level,
            self.cluster.deadline(),
        )
        for partition, reset in resets.items():
            current = self.states.get(partition)
            if current is not None and current.reset is reset:
                found = offsets[partition]
                epoch = self.cluster.metadata.leader_epoch(partition)
                current.seek(found.offset, found.leader_epoch, checked_epoch=epoch)

    # Checking

    async def _check(self) -> None:
        doubtful: dict[Node, list[TopicPartitionState]] = {}
        for state in self.states.values():
            leader = self.cluster.metadata.leader(state.partition)
            if leader is not None and self.is_doubtful(state):
                doubtful.setdefault(leader, []).append(state)
        for leader, states in doubtful.items():
            await self._ask_where_epochs_ended(leader, states)

    async def _ask_where_epochs_ended(
        self, leader: Node, states: list[TopicPartitionState]
    ) -> None:
        asked = {s.partition: (s, s.position, self._leader_epoch(s)) for s in states}
        try:
            answer = await self.cluster.ask(
                self._epoch_request(states), node=leader, deadline=self.cluster.deadline()
            )
        except FatalError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            for state, _, epoch in asked.values():  # a broker before 2.1: nothing can be checked
                state.checked_epoch = epoch
            return
        for topic in answer.topics:
            for found in topic.partitions:
                state, position, epoch = asked[TopicPartition(topic.topic, found.partition)]
                code = ErrorCode.of(found.error_code)
                if code is not ErrorCode.NONE:
                    self._refused(state, code)
                elif self.states.get(state.partition) is state and state.position == position:
                    end = EpochEndOffset(found.leader_epoch, found.end_offset)
                    truncation = look_for_truncation(state, end, epoch)
                    if truncation is not None:
                        self._truncated(state, truncation, end, epoch)

    def _leader_epoch(self, state: TopicPartitionState) -> int:
        return self.cluster.metadata.leader_epoch(state.partition)

    def _epoch_request(self, states: Iterable[TopicPartitionState]) -> OffsetForLeaderEpochRequest:
        by_partition = {state.partition: state for state in states}
        return OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                            partition=index,
                            current_leader_epoch=self._leader_epoch(state),
                            leader_epoch=state.leader_epoch,
                        )
                        for index in indexes
                        for state in (by_partition[TopicPartition(topic, index)],)
                    ],
                )
                for topic, indexes in by_topic(by_partition).items()
            ],
        )

    def _refused(self, state: TopicPartitionState, code: ErrorCode) -> None:
        """Another leader already, most of the time: the new metadata says whom to ask."""
        self.cluster.metadata.expire()
        raise error_for(code, f"the position in {state.partition} cannot be checked")

    def _truncated(
        self, state: TopicPartitionState, truncation: Truncation, end: EpochEndOffset, epoch: int
    ) -> None:
        if self.settings.auto_offset_reset not in _RESETS:
            raise TruncatedError(*truncation)
        log.warning("%s", TruncatedError(*truncation))
        if truncation.diverged_at is None:
            self.lost(state)
        else:
            state.seek(truncation.diverged_at, end.leader_epoch, checked_epoch=epoch)
