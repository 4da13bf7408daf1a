"""Transactions seen and repaired (KIP-664): list, describe, find hanging ones, abort, fence."""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass

from semel.client.cluster import Cluster
from semel.client.errors import error_for
from semel.client.machines.membership import by_topic
from semel.client.machines.types import Node, ProducerIdentity, TopicPartition
from semel.errors import UsageError
from semel.wire.errors import ErrorCode
from semel.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from semel.wire.messages.describe_transactions import DescribeTransactionsRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.list_transactions import ListTransactionsRequest
from semel.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from semel.wire.schema import Message

_TRANSACTION = 1
# Kafka's own tool takes a transaction for hanging when it is open for longer than this by far.
DEFAULT_MAX_TRANSACTION_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id among others."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id, and its transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    coordinator: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that a partition's leader remembers."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int | None


class TransactionAdministration:
    _cluster: Cluster

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Of all coordinators; `pattern` is a regular expression for the transactional id."""
        wanted_states, wanted_ids = list(states), list(producer_ids)

        def request(version: int) -> Message:
            message = ListTransactionsRequest(
                state_filters=wanted_states, producer_id_filters=wanted_ids
            )
            if version >= 1:
                message.duration_filter = longer_than_ms
            if version >= 2:
                message.transactional_id_pattern = pattern
            return message

        await self._cluster.refresh()
        found: list[TransactionListing] = []
        for node in self._cluster.metadata.nodes.values():
            answer = await self._cluster.ask(request, of=ListTransactionsRequest, node=node)
            if answer.error_code:
                raise error_for(answer.error_code, "transactions cannot be listed")
            if answer.unknown_state_filters:
                unknown = ", ".join(answer.unknown_state_filters)
                raise UsageError(f"the broker knows no transaction state {unknown}")
            found += [
                TransactionListing(
                    each.transactional_id, each.producer_id, each.transaction_state, node.node_id
                )
                for each in answer.transaction_states
            ]
        if pattern is not None:  # brokers before version 2 do not filter by it
            found = [each for each in found if re.fullmatch(pattern, each.transactional_id)]
        return sorted(found, key=lambda each: each.transactional_id)

    async def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """What its coordinator knows of a transactional id."""
        deadline = self._cluster.deadline()
        node = await self._cluster.find_coordinator(_TRANSACTION, transactional_id, deadline)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        answer = await self._cluster.ask(request, node=node, deadline=deadline)
        found = answer.transaction_states[0]
        if found.error_code:
            raise error_for(found.error_code, f"transactional id {transactional_id!r}")
        start = found.transaction_start_time_ms
        return TransactionDescription(
            transactional_id,
            found.transaction_state,
            found.producer_id,
            found.producer_epoch,
            found.transaction_timeout_ms,
            start if start >= 0 else None,
            node.node_id,
            frozenset(
                TopicPartition(topic.topic, index)
                for topic in found.topics
                for index in topic.partitions
            ),
        )

    async def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> list[ActiveProducer]:
        """The producers that the leaders of partitions remember, with their open transactions."""
        deadline = self._cluster.deadline()
        by_leader: dict[Node, list[TopicPartition]] = {}
        for partition in partitions:
            partition = TopicPartition(*partition)
            await self._cluster.topic(partition.topic, deadline)
            leader = self._cluster.metadata.leader(partition)
            if leader is None:
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, str(partition))
            by_leader.setdefault(leader, []).append(partition)
        found: list[ActiveProducer] = []
        for leader, mine in by_leader.items():
            request = DescribeProducersRequest(
                topics=[
                    DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=indexes)
                    for topic, indexes in by_topic(mine).items()
                ]
            )
            answer = await self._cluster.ask(request, node=leader, deadline=deadline)
            for topic in answer.topics:
                for result in topic.partitions:
                    partition = TopicPartition(topic.name, result.partition_index)
                    if result.error_code:
                        why = result.error_message
                        raise error_for(result.error_code, str(partition), why=why)
                    found += [_active(partition, state) for state in result.active_producers]
        return found

    async def find_hanging(
        self,
        partitions: Iterable[TopicPartition],
        *,
        open_longer_than_ms: int = DEFAULT_MAX_TRANSACTION_MS,
        now_ms: int | None = None,
    ) -> list[ActiveProducer]:
        """Open transactions in partitions that no coordinator will ever end, as of now if no time
        is given."""
        now_ms = int(time.time() * 1000) if now_ms is None else now_ms
        suspects = [
            producer
            for producer in await self.describe_producers(partitions)
            if producer.transaction_start_offset is not None
            and now_ms - producer.last_timestamp_ms >= open_longer_than_ms
        ]
        if not suspects:
            return []
        known = await self.list_transactions(producer_ids={s.producer_id for s in suspects})
        owners = {each.producer_id: each.transactional_id for each in known}
        hanging: list[ActiveProducer] = []
        for suspect in suspects:
            owner = owners.get(suspect.producer_id)
            if owner is None or not await self._is_in(owner, suspect.partition):
                hanging.append(suspect)
        return hanging

    async def _is_in(self, transactional_id: str, partition: TopicPartition) -> bool:
        return partition in (await self.describe_transaction(transactional_id)).partitions

    async def abort_transaction(self, hanging: ActiveProducer) -> None:
        """Writes the abort marker that a hanging transaction waits for, straight to the leader."""
        topic, index = hanging.partition
        deadline = self._cluster.deadline()
        await self._cluster.topic(topic, deadline)
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=hanging.producer_id,
            producer_epoch=hanging.producer_epoch,
            transaction_result=False,
            coordinator_epoch=max(hanging.coordinator_epoch, 0),
            topics=[
                WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[index])
            ],
        )
        leader = self._cluster.metadata.leader(hanging.partition)
        request = WriteTxnMarkersRequest(markers=[marker])
        answer = await self._cluster.ask(request, node=leader, deadline=deadline)
        code = answer.markers[0].topics[0].partitions[0].error_code
        if code:
            raise error_for(code, f"the transaction in {hanging.partition} was not aborted")

    async def fence_producer(self, transactional_id: str) -> ProducerIdentity:
        """Takes a transactional id over: its producer is fenced, its open transaction aborted."""
        deadline = self._cluster.deadline()
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1)
        attempt = 0
        while True:
            node = await self._cluster.find_coordinator(_TRANSACTION, transactional_id, deadline)
            answer = await self._cluster.ask(request, node=node, deadline=deadline, at_most=5)
            if not answer.error_code:
                return ProducerIdentity(answer.producer_id, answer.producer_epoch)
            attempt += 1
            code = ErrorCode.of(answer.error_code)
            if not await self._cluster.may_try_again(code, attempt, deadline):
                raise error_for(code, f"transactional id {transactional_id!r}")


def _active(
    partition: TopicPartition, state: DescribeProducersResponse.ProducerState
) -> ActiveProducer:
    start = state.current_txn_start_offset
    return ActiveProducer(
        partition,
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch,
        start if start >= 0 else None,
    )
