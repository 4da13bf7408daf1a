"""Fetches records in the background: one request per leader at a time, answers kept for polls."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from semel.client.cluster import FETCH, Cluster
from semel.client.consumer.records import ConsumerRecord, Deserializers
from semel.client.errors import error_for
from semel.client.machines.fetching import (
    Aborted,
    FetchErrorAction,
    FetchSession,
    PartitionFetch,
    TopicPartitionState,
    action_for,
    end_of,
    visible_batches,
)
from semel.client.machines.types import Node, TopicPartition
from semel.client.metrics import ConsumerMeter
from semel.client.offsets import ISOLATION
from semel.client.settings import ConsumerSettings
from semel.errors import DeserializationError, FatalError, RetriableError, SemelError
from semel.net.client_connection import (
    AuthenticationFailed,
    ClientConnection,
    ConnectionLost,
    VersionMismatch,
)
from semel.wire.batches import BatchHeader, Record, records_of
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.messages.fetch import FetchRequest, FetchResponse

_TOPIC_IDS_FROM = 13
T = TypeVar("T")


class _Fetched:
    """An answer for one partition, decoded batch by batch as it is polled."""

    __slots__ = ("batches", "current", "end", "partition", "position", "ready")

    def __init__(self, partition: TopicPartition, position: int, batches: Any, end: int) -> None:
        self.partition = partition
        self.position = position
        self.batches = batches
        self.end = end
        self.ready: list[ConsumerRecord[bytes, bytes]] = []
        self.current: BatchHeader | None = None  # the batch that `ready` is of

    def rest(self) -> Iterator[BatchHeader]:
        """The batches that were not polled, or not wholly."""
        if self.ready and self.current is not None:
            yield self.current
        yield from self.batches


class Fetcher:
    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        states: dict[TopicPartition, TopicPartitionState],
        on_lost_position: Callable[[TopicPartitionState], None],
        meter: ConsumerMeter,
        deserializers: Deserializers = Deserializers(),  # noqa: B008  (frozen)
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.states = states
        self._on_lost_position = on_lost_position
        self._meter = meter
        self._deserialize = deserializers.read if any(deserializers) else None
        self._sessions: dict[int, FetchSession] = {}
        self._busy: set[int] = set()
        self._fetched: deque[_Fetched] = deque()
        self._error: SemelError | None = None
        self._arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._refreshing: asyncio.Task[None] | None = None
        self._not_before = 0.0

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def forget(self, partition: TopicPartition) -> None:
        """Drops what was fetched: the position changed, or the partition is no longer ours."""
        self._fetched = deque(each for each in self._fetched if each.partition != partition)

    async def wait(self, timeout_s: float) -> None:
        """Until something arrived (or failed), or the time is over."""
        has_some = any(not self._is_paused(fetched) for fetched in self._fetched)
        if has_some or self._error is not None:
            return
        self._arrived.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        except TimeoutError:
            pass

    # Taking

    def take(self, max_records: int) -> list[ConsumerRecord[Any, Any]]:
        """Records in the order of each partition, and the positions moved behind them.

        One that cannot be deserialized is raised where nothing comes before it, else by the next
        call; the position stays at it.
        """
        taken: list[ConsumerRecord[Any, Any]] = []
        for fetched, state in self._takeable():
            try:
                self._take_from(fetched, state, taken, max_records)
            except ProtocolError as damage:
                self._damaged(state, damage, tell=not taken)
                break
            except DeserializationError:
                if not taken:
                    raise
                break
            except BaseException:  # a deserializer that ends the program: nothing was given out
                self._put_back(fetched.partition, taken)
                raise
            if len(taken) >= max_records:
                break
        return taken

    def take_answers(
        self, most: int, decode: Callable[[TopicPartition, int, Iterable[BatchHeader]], T]
    ) -> list[T]:
        """Whole answers, decoded from their positions on; these move behind them."""
        taken: list[T] = []
        for fetched, state in self._takeable():
            try:
                batches = list(fetched.rest())
                taken.append(decode(fetched.partition, state.position, batches))
            except ProtocolError as damage:
                self._damaged(state, damage, tell=not taken)
                break
            if batches:
                state.leader_epoch = batches[-1].leader_epoch
            state.position = fetched.end
            self._fetched.popleft()
            if len(taken) >= most:
                break
        return taken

    def _takeable(self) -> Iterator[tuple[_Fetched, TopicPartitionState]]:
        """The first answer that may be polled, until there is none."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        while self._fetched:
            fetched = self._fetched[0]
            state = self.states.get(fetched.partition)
            if state is None or state.position != fetched.position:
                self._fetched.popleft()  # seeked away or revoked meanwhile
            elif state.paused:
                self._fetched.rotate(-1)
                if all(self._is_paused(each) for each in self._fetched):
                    return
            else:
                yield fetched, state

    def _damaged(self, state: TopicPartitionState, damage: ProtocolError, tell: bool) -> None:
        """Raises, or leaves that to the next poll: it fetches again, and this one has records."""
        self._fetched.popleft()
        if tell:
            at = f"{state.partition} from offset {state.position}"
            raise FatalError(f"{at} cannot be read: {damage}") from None

    def _is_paused(self, fetched: _Fetched) -> bool:
        state = self.states.get(fetched.partition)
        return state is not None and state.paused

    def _take_from(
        self, fetched: _Fetched, state: TopicPartitionState, taken: list[Any], most: int
    ) -> None:
        while len(taken) < most:
            if not fetched.ready:
                batch = next(fetched.batches, None)
                if batch is None:
                    state.position = fetched.end
                    self._fetched.popleft()
                    return
                state.leader_epoch = batch.leader_epoch
                fetched.current = batch
                fetched.ready = _of(fetched.partition, records_of(batch), state.position)
                continue
            room = most - len(taken)
            part, fetched.ready = fetched.ready[:room], fetched.ready[room:]
            if self._deserialize is not None:
                self._take_deserialized(fetched, state, part, taken)
                continue
            taken += part
            state.position = fetched.position = part[-1].offset + 1

    def _put_back(self, last: TopicPartition, taken: list[ConsumerRecord[Any, Any]]) -> None:
        """The positions before what was taken; it is fetched again."""
        self.forget(last)
        for record in reversed(taken):
            self.forget(record.topic_partition)
            self.states[record.topic_partition].position = record.offset

    def _take_deserialized(
        self,
        fetched: _Fetched,
        state: TopicPartitionState,
        part: list[ConsumerRecord[bytes, bytes]],
        taken: list[Any],
    ) -> None:
        assert self._deserialize is not None
        for place, record in enumerate(part):
            try:
                taken.append(self._deserialize(record))
            except DeserializationError:
                fetched.ready = part[place:] + fetched.ready
                state.position = fetched.position = record.offset
                raise
        state.position = fetched.position = part[-1].offset + 1

    # Fetching

    def send_fetches(self) -> None:
        """Asks every leader that is not busy for the partitions that have nothing waiting."""
        if self._loop.time() < self._not_before:
            return
        waiting = {fetched.partition for fetched in self._fetched}
        by_leader: dict[Node, dict[TopicPartition, PartitionFetch]] = {}
        for partition, state in self.states.items():
            if not state.is_fetchable or partition in waiting:
                continue
            epoch = self.cluster.metadata.leader_epoch(partition)
            if state.is_doubtful(epoch):
                continue  # the new leader is asked first whether its log holds our position
            leader = self.cluster.metadata.leader(partition)
            if leader is None:
                self.cluster.wanted_topics.add(partition.topic)
                self.cluster.metadata.expire()
                self.refresh()
                continue
            by_leader.setdefault(leader, {})[partition] = PartitionFetch(
                state.position,
                epoch,
                -1,
                self.settings.max_partition_fetch_bytes,
            )
        for leader, wanted in by_leader.items():
            if leader.node_id in self._busy:
                continue
            self._busy.add(leader.node_id)
            connection = self.cluster.ready_connection(leader, FETCH)
            if connection is not None:
                self._fetch(leader, connection, wanted)
            else:
                self._spawn(self._connect_and_fetch(leader, wanted))

    async def _connect_and_fetch(
        self, leader: Node, wanted: dict[TopicPartition, PartitionFetch]
    ) -> None:
        try:
            connection = await self.cluster.connection(leader, FETCH)
        except ConnectionLost:
            self._busy.discard(leader.node_id)
            self.cluster.metadata.expire()
            self.refresh()
        except (AuthenticationFailed, ProtocolError) as error:
            self._busy.discard(leader.node_id)
            self._fail(FatalError(str(error)))
        else:
            self._fetch(leader, connection, wanted)

    def wake(self) -> None:
        """A poll that waits should look again: something else than records changed."""
        self._arrived.set()

    def refresh(self) -> None:
        """New metadata, beside the application; failures that will pass are tried again."""
        if self._refreshing is None:
            self._refreshing = self._spawn(self._refresh())

    async def _refresh(self) -> None:
        try:
            await self.cluster.refresh()
        except RetriableError:
            self._pause_fetching()
        except SemelError as error:
            self._fail(error)
        finally:
            self._refreshing = None
            self._arrived.set()

    def _pause_fetching(self) -> None:
        delay = self.cluster.backoff.delay_ms(1) / 1000
        self._not_before = self._loop.time() + delay
        self._loop.call_later(delay, self._arrived.set)

    def _fetch(
        self,
        leader: Node,
        connection: ClientConnection,
        wanted: dict[TopicPartition, PartitionFetch],
    ) -> None:
        settings = self.settings
        session = self._sessions.setdefault(leader.node_id, FetchSession())
        named, forgotten = session.build(wanted)
        metadata = self.cluster.metadata
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=ISOLATION[settings.isolation_level],
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=_topics(named, metadata.topic_id),
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(
                    topic=topic, topic_id=metadata.topic_id(topic), partitions=indexes
                )
                for topic, indexes in _grouped(forgotten).items()
            ],
            rack_id=settings.client_rack,
        )
        try:
            # Where a broker's metadata has no topic ids, fetches must go without them.
            ids_known = all(metadata.topic_id(p.topic).int for p in (*wanted, *forgotten))
            limit = 0x7FFF if ids_known else _TOPIC_IDS_FROM - 1
            version = connection.version_for(FetchRequest, limit)
        except VersionMismatch as error:
            self._busy.discard(leader.node_id)
            self._fail(FatalError(str(error)))
            return
        timeout_s = (settings.request_timeout_ms + settings.fetch_max_wait_ms) / 1000
        answer = connection.request(request, timeout_s, version)
        sent_ms = self.cluster.now_ms()
        answer.add_done_callback(partial(self._answered, leader, session, wanted, sent_ms))

    def _answered(
        self,
        leader: Node,
        session: FetchSession,
        wanted: dict[TopicPartition, PartitionFetch],
        sent_ms: float,
        answer: asyncio.Future[Any],
    ) -> None:
        self._busy.discard(leader.node_id)
        if answer.cancelled():
            return
        if answer.exception() is not None:
            session.restart()
            self.cluster.metadata.expire()
            self.refresh()
        else:
            self._meter.fetches.add(self.cluster.now_ms() - sent_ms)
            self._accept(answer.result(), session, wanted)
        self._arrived.set()

    def _accept(
        self,
        answer: FetchResponse,
        session: FetchSession,
        wanted: dict[TopicPartition, PartitionFetch],
    ) -> None:
        code = ErrorCode.of(answer.error_code)
        if code is not ErrorCode.NONE:
            self._meter.errors[code.name] += 1
            session.restart()
            if action_for(code) == FetchErrorAction.REFRESH:
                self.cluster.metadata.expire()
                self.refresh()
            elif not code.retriable:
                self._fail(error_for(code, "fetching failed"))
            return
        session.answered(answer.session_id)
        names = self.cluster.metadata.names
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                state, want = self.states.get(partition), wanted.get(partition)
                if state is not None and want is not None and state.position == want.position:
                    self._accept_partition(state, data, want.leader_epoch)

    def _accept_partition(
        self, state: TopicPartitionState, data: FetchResponse.PartitionData, leader_epoch: int
    ) -> None:
        code = ErrorCode.of(data.error_code)
        if code is not ErrorCode.NONE:
            self._meter.errors[code.name] += 1
            self._refused(state, code)
            return
        state.checked_epoch = leader_epoch
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if not data.records:
            return
        self._meter.bytes += len(data.records)
        aborted = None
        if self.settings.isolation_level == "read_committed":
            aborted = [
                Aborted(a.producer_id, a.first_offset) for a in data.aborted_transactions or ()
            ]
        try:
            batches = visible_batches(
                data.records, state.position, aborted, check_crcs=self.settings.check_crcs
            )
            end = end_of(data.records, state.position)
        except ProtocolError as error:
            self._fail(FatalError(f"{state.partition} cannot be read: {error}"))
            return
        self._fetched.append(_Fetched(state.partition, state.position, batches, end))

    def _refused(self, state: TopicPartitionState, code: ErrorCode) -> None:
        action = action_for(code)
        if action == FetchErrorAction.RESET:
            try:
                self._on_lost_position(state)
            except SemelError as error:
                self._fail(error)
        elif action == FetchErrorAction.REFRESH:
            self.cluster.metadata.expire()
            self.refresh()
        elif action == FetchErrorAction.RAISE:
            self._fail(error_for(code, f"{state.partition} cannot be fetched"))
        if action in (FetchErrorAction.REFRESH, FetchErrorAction.AGAIN):
            self._pause_fetching()

    def _fail(self, error: SemelError) -> None:
        self._error = error
        self._arrived.set()

    def _spawn(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _of(
    partition: TopicPartition, records: list[Record], position: int
) -> list[ConsumerRecord[bytes, bytes]]:
    """Records from `position` on: a batch may begin before it."""
    topic, index = partition
    make = tuple.__new__
    return [
        make(ConsumerRecord, (topic, index, *record)) for record in records if record[0] >= position
    ]


def _grouped(partitions: list[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def _topics(
    wanted: dict[TopicPartition, PartitionFetch], topic_id: Callable[[str], Any]
) -> list[FetchRequest.FetchTopic]:
    grouped: dict[str, list[FetchRequest.FetchPartition]] = {}
    for (topic, index), want in wanted.items():
        grouped.setdefault(topic, []).append(
            FetchRequest.FetchPartition(
                partition=index,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.position,
                last_fetched_epoch=want.last_fetched_epoch,
                partition_max_bytes=want.max_bytes,
            )
        )
    return [
        FetchRequest.FetchTopic(topic=topic, topic_id=topic_id(topic), partitions=partitions)
        for topic, partitions in grouped.items()
    ]
