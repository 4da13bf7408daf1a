"""The producer's engine: sends batches and transactional requests as the core decides.

It runs in turns on the event loop, never as a task of its own: `wake` asks for a turn, and a turn
does whatever can be done now. Records appended within one turn of the loop thus leave together.
"""

import asyncio
import logging
import random
from contextlib import suppress
from functools import partial
from typing import Any

from semel.client.cluster import Cluster
from semel.client.machines.accumulator import Accumulator, ProducerBatch
from semel.client.machines.delivery import STALE_METADATA, ProduceVerdict, judge_produce
from semel.client.machines.transactions import State, TransactionManager, TxnRequestHandler
from semel.client.machines.types import NO_PRODUCER, Failure, Node, TopicPartition
from semel.client.metrics import ProducerMeter
from semel.client.producer.produce import (
    PRODUCE_ADDS_FROM,
    produce_request,
    reason_of,
    speaks_version_2,
)
from semel.client.producer.refusals import Refusals
from semel.client.settings import ProducerSettings
from semel.errors import FatalError, RetriableError
from semel.net.client_connection import (
    AuthenticationFailed,
    ClientConnection,
    ConnectionLost,
    VersionMismatch,
)
from semel.wire.errors import ErrorCode, ErrorKind, ProtocolError
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.produce import ProduceRequest, ProduceResponse

log = logging.getLogger("semel.client")
_FATAL = (AuthenticationFailed, FatalError, VersionMismatch, ProtocolError)


class Sender:
    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        manager: TransactionManager,
        settings: ProducerSettings,
    ) -> None:
        self.cluster = cluster
        self.accumulator = accumulator
        self.manager = manager
        self.settings = settings
        self.idempotent = settings.enable_idempotence
        self.closed = False
        self.refusals = Refusals()
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._connecting: set[Node] = set()
        self._room_waiters: list[asyncio.Future[None]] = []
        self._in_flight: dict[ClientConnection, int] = {}
        self.meter = ProducerMeter(cluster.now_ms())

    def wake(self) -> None:
        if not self._scheduled and not self.closed:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    async def close(self) -> None:
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        closed = Failure(ErrorKind.FATAL, "the producer was closed")
        self.manager.close(closed)
        for batch in self.accumulator.unsettled():
            batch.settle(closed)
        self._tell_of_room()

    async def wait_for_room(self) -> None:
        """Waits until some batch has left the buffer."""
        waiter = self._loop.create_future()
        self._room_waiters.append(waiter)
        self.wake()
        await waiter

    # One turn

    def _turn(self) -> None:
        self._scheduled = False
        if self.closed:
            return
        try:
            now_ms = self.cluster.now_ms()
            if self.cluster.metadata.needs_refresh(now_ms):
                self._connect_later(None)
            self._give_up_late_batches(now_ms)
            self._send_transactional_request(now_ms)
            self._send_batches(now_ms)
            self._set_timer(now_ms)
        except Exception as error:
            self._break_down(error)

    def _break_down(self, error: BaseException) -> None:
        """A mistake of ours: whoever waits hears of it now, and not when their time is over."""
        log.error("a producer broke down", exc_info=error)
        failure = Failure(
            ErrorKind.FATAL,
            f"the producer broke down ({error!r}). This is a mistake in Semel: close the producer, "
            "make a new one, and report it with the log's lines",
        )
        request, self.manager.in_flight = self.manager.in_flight, None
        if request is not None:
            request.pending.settle(failure)
        self._give_up_all(failure)

    def _set_timer(self, now_ms: float) -> None:
        times = (self.accumulator.wake_at_ms(now_ms), self.manager.wake_at_ms())
        soonest = min((t for t in times if t is not None and t > now_ms), default=None)
        if soonest is None or (self._timer is not None and self._timer_at_ms <= soonest):
            return  # a turn too early does no harm; setting timers anew costs more
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_ms = soonest
        self._timer = self._loop.call_at(soonest / 1000, self._timer_rang)

    def _timer_rang(self) -> None:
        self._timer = None
        self.wake()

    def _give_up_late_batches(self, now_ms: float) -> None:
        if self.manager.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            assert self.manager.failure is not None
            if self.accumulator.has_unsettled:
                self._drop_unsent(self.manager.failure)
        for batch in self.accumulator.expired(now_ms):
            failure = self.refusals.too_late(batch, self.settings.delivery_timeout_ms)
            self.accumulator.drop(batch, failure)
            self._batch_failed(failure)
            self._tell_of_room()

    def abort_unsent(self) -> None:
        self._drop_unsent(Failure(ErrorKind.ABORTABLE, "the transaction was aborted"))
        self.wake()

    def _drop_unsent(self, failure: Failure) -> None:
        before = self.accumulator.buffered
        if self.accumulator.drop_unsent(failure) and self.manager.is_transactional:
            self.manager.fail_abortable(failure, needs_bump=True)
        if self.accumulator.buffered != before:
            self._tell_of_room()  # not for nothing: who looks in vain asks for another turn

    # Transactional requests

    def _send_transactional_request(self, now_ms: float) -> None:
        manager = self.manager
        if not self.idempotent:
            return
        waiting = self.accumulator.has_unsettled
        if not manager.is_transactional and manager.state is State.UNINITIALIZED and waiting:
            manager.init_transactions()
        if manager.take_sequence_reset():
            self.accumulator.reset_sequences()
        request = manager.next_request(now_ms, waiting)
        if request is None:
            return
        node = manager.coordinator_for(request)
        connection = self.cluster.ready_connection(node) if node is not None else None
        if connection is not None:
            self._ask(request, connection)
        else:
            self._spawn(self._connect_and_ask(request, node))

    def _ask(self, request: TxnRequestHandler, connection: ClientConnection) -> None:
        try:
            if request.message_class is InitProducerIdRequest:
                self._learn_protocol(connection)
            version = connection.version_for(request.message_class, request.version_limit())
            timeout_s = self.settings.request_timeout_ms / 1000
            message = request.message(version)
            connection.ask(message, timeout_s, version, partial(self._answered, request))
        except _FATAL as error:
            self._cannot_ask(request, error)

    def _learn_protocol(self, connection: ClientConnection) -> None:
        """Which transaction protocol to speak is settled with each new epoch (KIP-890)."""
        theirs = connection.versions
        wanted = self.settings.max_transaction_version >= 2
        self.manager.version = 2 if wanted and speaks_version_2(connection) else 1
        self.manager.can_bump = theirs.get(InitProducerIdRequest.API_KEY, range(0)).stop > 3

    async def _connect_and_ask(self, request: TxnRequestHandler, node: Node | None) -> None:
        try:
            if node is not None:
                connection = await self.cluster.connection(node)
            else:
                deadline = self.cluster.deadline(self.settings.request_timeout_ms)
                connection = await self.cluster.any_connection(deadline)
        except (ConnectionLost, RetriableError):
            request.lost(self.cluster.now_ms())
            self.wake()
            return
        except _FATAL as error:
            self._cannot_ask(request, error)
            return
        self._ask(request, connection)

    def _cannot_ask(self, request: TxnRequestHandler, error: Exception) -> None:
        failure = Failure(ErrorKind.FATAL, str(error))
        self.manager.in_flight = None
        self.manager.fail_fatally(failure)
        request.pending.settle(failure)
        self.wake()

    def _answered(
        self, request: TxnRequestHandler, answer: Any, lost: ConnectionLost | None
    ) -> None:
        if self.closed:
            return
        now_ms = self.cluster.now_ms()
        try:
            if lost is not None:
                request.lost(now_ms)
            else:
                request.answered(answer, now_ms)
        except Exception as error:
            self._break_down(error)
        self._turn()

    # Batches

    def _send_batches(self, now_ms: float) -> None:
        """Requests to every leader that has room, one batch per partition in each."""
        joining: set[ClientConnection] = set()
        try:
            while by_connection := self._take_batches(now_ms):
                for connection, batches in by_connection.items():
                    if connection not in joining:
                        joining.add(connection)
                        connection.join()
                    self._produce(connection, batches, now_ms)
        finally:
            for connection in joining:
                connection.send_joined()

    def _take_batches(self, now_ms: float) -> dict[ClientConnection, list[ProducerBatch]]:
        by_connection: dict[ClientConnection, list[ProducerBatch]] = {}
        sizes: dict[ClientConnection, int] = {}
        identity = self.manager.producer if self.idempotent else NO_PRODUCER
        for queue in self.accumulator.sendable(now_ms):
            connection = self._connection_for(queue.partition)
            if connection is None:
                continue
            if sizes.get(connection, 0) >= self.settings.max_request_size:
                continue
            batch = self.accumulator.take(
                queue,
                identity,
                idempotent=self.idempotent,
                transactional=self.manager.is_transactional,
                begins_at_zero=self.manager.is_transactional and self.manager.version >= 2,
            )
            if batch is not None and batch.data is not None:
                by_connection.setdefault(connection, []).append(batch)
                sizes[connection] = sizes.get(connection, 0) + len(batch.data)
        return by_connection

    def _connection_for(self, partition: TopicPartition) -> ClientConnection | None:
        """The connection on which the partition may be sent to now, or None."""
        if self.idempotent and not self.manager.may_send_to(partition):
            return None
        leader = self.cluster.metadata.leader(partition)
        if leader is None:
            self.cluster.metadata.expire()
            self._connect_later(None)
            return None
        connection = self.cluster.ready_connection(leader)
        if connection is None:
            self._connect_later(leader)
            return None
        limit = self.settings.max_in_flight_requests_per_connection
        return connection if self._in_flight.get(connection, 0) < limit else None

    def _connect_later(self, leader: Node | None) -> None:
        """Finds the leader, or connects to it, and takes another turn when that is done."""
        node = leader or Node(-1, "", 0)
        if node not in self._connecting:
            self._connecting.add(node)
            self._spawn(self._connect_to_leader(node, leader))

    async def _connect_to_leader(self, node: Node, leader: Node | None) -> None:
        try:
            if leader is not None:
                await self._connect(leader)
            else:
                await self.cluster.refresh()
                await self._pause()
        except RetriableError:  # the cluster cannot be asked: the batches' own deadlines decide
            await self._pause()
        except _FATAL as error:
            self._give_up_all(Failure(ErrorKind.FATAL, str(error)))
        finally:
            self._connecting.discard(node)
            self.wake()

    async def _connect(self, leader: Node) -> None:
        """To a leader, or, if it cannot be reached, to whoever knows where it is now."""
        try:
            await self.cluster.connection(leader)
        except ConnectionLost:
            self.cluster.metadata.expire()
            await self.cluster.refresh()

    async def _pause(self) -> None:
        await asyncio.sleep(self.cluster.backoff.delay_ms(1, random.random()) / 1000)

    def _produce(
        self, connection: ClientConnection, batches: list[ProducerBatch], now_ms: float
    ) -> None:
        request = produce_request(
            batches,
            self.cluster.metadata.topic_id,
            transactional_id=self.manager.transactional_id,
            acks=self.settings.required_acks,
            timeout_ms=self.settings.request_timeout_ms,
        )
        old_protocol = self.manager.is_transactional and self.manager.version == 1
        at_most = PRODUCE_ADDS_FROM - 1 if old_protocol else 0x7FFF
        if self.settings.required_acks == 0:
            self._tell(connection, request, batches)
            return
        version = connection.version_for(ProduceRequest, at_most)
        self._in_flight[connection] = self._in_flight.get(connection, 0) + 1
        connection.ask(
            request,
            self.settings.request_timeout_ms / 1000,
            version,
            partial(self._produced, connection, batches, now_ms),
        )

    def _tell(
        self, connection: ClientConnection, request: ProduceRequest, batches: list[ProducerBatch]
    ) -> None:
        with suppress(ConnectionLost):  # acks=0 promises nothing
            connection.tell(request)
        for batch in batches:
            self.meter.delivered(batch, self.cluster.now_ms())
            self.accumulator.accepted(batch, -1, -1)
        self._tell_of_room()

    def _produced(
        self,
        connection: ClientConnection,
        batches: list[ProducerBatch],
        sent_ms: float,
        answer: ProduceResponse,
        lost: ConnectionLost | None,
    ) -> None:
        count = self._in_flight.pop(connection, 1) - 1
        if count:
            self._in_flight[connection] = count
        if self.closed:
            return
        try:
            now_ms = self.cluster.now_ms()
            results = {} if lost is not None else self._results(answer)
            self.meter.requests.add(now_ms - sent_ms)
            for batch in batches:
                result = results.get(batch.partition)
                if result is None:
                    why = str(lost) if lost is not None else "the answer does not name it"
                    self._judge(batch, ErrorCode.NETWORK_EXCEPTION, why, now_ms)
                elif result.error_code == 0:
                    self.meter.delivered(batch, now_ms)
                    self.accumulator.accepted(batch, result.base_offset, result.log_append_time_ms)
                else:
                    self._refused(batch, result, now_ms)
        except Exception as error:
            self._break_down(error)
        self._tell_of_room()
        if self.manager.state is State.COMMITTING_TRANSACTION:
            self._turn()  # somebody waits for the commit: it leaves now, not a turn later
        else:
            self.wake()

    def _refused(
        self, batch: ProducerBatch, result: ProduceResponse.PartitionProduceResponse, now_ms: float
    ) -> None:
        if result.current_leader.leader_id >= 0:
            leader = result.current_leader
            self.cluster.metadata.leader_moved(
                batch.partition, leader.leader_id, leader.leader_epoch
            )
        code = ErrorCode.of(result.error_code)
        self._judge(batch, code, reason_of(result), now_ms, result.base_offset)

    def _results(
        self, answer: ProduceResponse
    ) -> dict[TopicPartition, ProduceResponse.PartitionProduceResponse]:
        names = self.cluster.metadata.names
        return {
            TopicPartition(topic.name or names.get(topic.topic_id, ""), result.index): result
            for topic in answer.responses
            for result in topic.partition_responses
        }

    def _judge(
        self, batch: ProducerBatch, code: ErrorCode, why: str, now_ms: float, base_offset: int = -1
    ) -> None:
        manager, accumulator = self.manager, self.accumulator
        aborting = manager.state in (
            State.ABORTING_TRANSACTION,
            State.ABORTABLE_ERROR,
            State.FATAL_ERROR,
        )
        late = now_ms - batch.created_ms >= self.settings.delivery_timeout_ms
        outcome = judge_produce(
            code,
            is_oldest=accumulator.queues[batch.partition].is_oldest(batch),
            records=batch.count,
            transactional=manager.is_transactional,
            idempotent=self.idempotent,
            expired=late or aborting,
        )
        self.meter.errors[code.name] += 1
        if code in STALE_METADATA:
            self.cluster.metadata.expire()
            self._connect_later(None)
        if outcome is ProduceVerdict.ACCEPTED:
            self.meter.delivered(batch, now_ms)
            accumulator.accepted(batch, base_offset, -1)
        elif outcome is ProduceVerdict.AGAIN:
            self.meter.retries += 1
            delay = self.cluster.backoff.delay_ms(batch.attempts, random.random())
            accumulator.again(batch, now_ms + delay)
            self.refusals.note(batch.partition, now_ms, code, why)
        elif outcome is ProduceVerdict.RENUMBER:
            self.meter.retries += 1
            accumulator.again(batch, now_ms)
            self._renumber(batch.partition)
        elif outcome is ProduceVerdict.SPLIT and accumulator.split(batch, now_ms):
            self.meter.splits += 1
        else:
            what = f"a batch for {batch.partition} was not written ({why})"
            failure = manager.explained(Failure(code.kind, what, code), now_ms)
            unsure = code is ErrorCode.NETWORK_EXCEPTION or code is ErrorCode.REQUEST_TIMED_OUT
            accumulator.given_up(batch, failure)
            self._batch_failed(failure)
            if self.idempotent and not manager.is_transactional:
                queue = accumulator.queues[batch.partition]
                if unsure:
                    queue.unresolved = True
                elif not queue.in_flight:
                    self._renumber(batch.partition)

    def _renumber(self, partition: TopicPartition) -> None:
        self.manager.bump_idempotent_epoch()
        self.manager.take_sequence_reset()  # other partitions change over when they are idle
        self.accumulator.restart_sequences(partition)

    def _batch_failed(self, failure: Failure) -> None:
        if self.manager.is_transactional or failure.kind is ErrorKind.FATAL:
            self.manager.batch_failed(failure)

    def _give_up_all(self, failure: Failure) -> None:
        self.accumulator.drop_unsent(failure)
        self.manager.fail_fatally(failure)
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        waiters, self._room_waiters = self._room_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _spawn(self, coroutine: Any) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._break_down(error)
