"""A transaction whose records are sent by others: the driver owns it, tasks borrow its producer id.

The driver opens and ends it; what it lends is a frozen value, good for one transaction. Under
KIP-890's protocol (version 2) ending a transaction hands out the next producer id and epoch, so
that a borrower who comes too late is refused by the broker. Under the older protocol (version 1)
the epoch is bumped by InitProducerId before every transaction, for the same reason, and aborts go
through it too.
"""

from __future__ import annotations

import enum
import logging
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from semel.client.errors import error_for
from semel.errors import FencedError, RefusedError, SemelError, UnreachableError
from semel.spark.kafka.client import (
    GROUP,
    TRANSACTION,
    BlockingCluster,
    BlockingConnection,
    check,
    patiently,
)
from semel.wire.batches import BatchBuilder
from semel.wire.errors import ErrorCode
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from semel.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from semel.wire.messages.describe_configs import DescribeConfigsRequest
from semel.wire.messages.describe_groups import DescribeGroupsRequest
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.produce import ProduceRequest
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest

log = logging.getLogger(__name__)

Target = tuple[str, int]
_BROKER = 4  # ConfigResource.Type
_ALL_REPLICAS = -1
_PATIENCE_S = 120.0
# What the protocols differ in: the highest versions of the older one.
_VERSION_1 = {0: 11, 26: 4, 28: 4}


class CommitOutcome(enum.Enum):
    COMMITTED = "committed"
    IN_DOUBT = "in doubt"


@dataclass(frozen=True, slots=True)
class Lent:
    """What a borrower needs to write into the transaction. The token is checked by the lender."""

    transactional_id: str
    producer_id: int
    epoch: int
    protocol: int
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        # Kafka accepts a transactional batch of producer -1, and everybody can see it.
        assert self.producer_id >= 0, f"lending producer id {self.producer_id}"
        assert self.epoch >= 0, f"lending epoch {self.epoch}"


def highest_version(protocol: int, api_key: int) -> int | None:
    return _VERSION_1.get(api_key) if protocol == 1 else None


class Lender:
    """The owner of a transactional id, on the driver."""

    def __init__(
        self,
        cluster: BlockingCluster,
        transactional_id: str,
        timeout_ms: int,
        allow_unverified: bool = False,
    ) -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.protocol = 0
        self.producer_id = -1
        self.epoch = -1
        self._allow_unverified = allow_unverified
        self._added: set[Target] = set()
        self._spent = False

    # ------------------------------------------------------------------ taking over

    def fence(self) -> None:
        """Take the id over: an earlier owner is fenced and its open transaction ended."""
        if not self.protocol:
            self.protocol = self._choose_protocol()
        self._init(-1, -1)

    def recover(self) -> None:
        """End whatever is open of ours; `FencedError` if somebody else has taken over (KIP-360)."""
        self._init(self.producer_id, self.epoch)

    def lend(self) -> Lent:
        """A transaction begins with its first record; the token is new for every attempt."""
        if self._spent:
            self.recover()
        token = secrets.token_hex(16)
        return Lent(self.transactional_id, self.producer_id, self.epoch, self.protocol, token)

    def _init(self, producer_id: int, epoch: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )

        def attempt() -> None:
            answer = self._coordinator().call(request)
            check(answer.error_code, f"taking over {self.transactional_id!r}")
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

        try:
            patiently(attempt, f"taking over {self.transactional_id!r}", _PATIENCE_S, self._lost)
        except SemelError as error:
            explained = self._explain(error)
            if explained is error:
                raise
            raise explained from error
        self._added = set()
        self._spent = False

    def _explain(self, error: SemelError) -> SemelError:
        if error.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
            return FencedError(
                f"another driver has taken over {self.transactional_id!r}: two queries may not run"
                " under one application name at the same time",
                error.code,
            )
        if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            allowed = self._broker_setting("transaction.max.timeout.ms")
            return RefusedError(
                f"a transaction may last {self.timeout_ms} ms here, but the broker allows"
                f" {allowed} (transaction.max.timeout.ms): raise that, or lower"
                " transaction_timeout_ms and keep every batch shorter"
            )
        return error

    def _choose_protocol(self) -> int:
        connection = patiently(self.cluster.any, "connecting", _PATIENCE_S)
        if connection.features.get("transaction.version", 0) >= 2:
            return 2
        verified = self._broker_setting("transaction.partition.verification.enable")
        if verified != "true" and not self._allow_unverified:
            raise RefusedError(
                "this broker neither speaks KIP-890's transaction protocol nor verifies"
                " transactional writes (transaction.partition.verification.enable, Kafka 3.6), so"
                " a late task could write outside its transaction; allow_unverified=True accepts"
                " that"
            )
        return 1

    def _broker_setting(self, name: str) -> str | None:
        self.cluster.refresh([])
        for node_id in self.cluster.node_ids():
            resource = DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=_BROKER, resource_name=str(node_id), configuration_keys=[name]
            )
            try:
                answer = self.cluster.node(node_id).call(
                    DescribeConfigsRequest(resources=[resource])
                )
            except OSError:
                continue
            for entry in (entry for result in answer.results for entry in result.configs):
                if entry.name == name:
                    return str(entry.value)
        return None

    # ------------------------------------------------------------------ inside a transaction

    def add_partitions(self, targets: Iterable[Target]) -> None:
        """Version 1 only: a partition is named to the coordinator before its first record."""
        new = sorted(set(targets) - self._added)
        if self.protocol != 1 or not new:
            return
        topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        names = dict.fromkeys(topic for topic, _ in new)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                topic_class(name=name, partitions=[p for topic, p in new if topic == name])
                for name in names
            ],
        )

        def attempt() -> None:
            answer = self._coordinator().call(request)
            for topic in answer.results_by_topic_v3_and_below:
                for entry in topic.results_by_partition:
                    check(entry.partition_error_code, f"adding {topic.name} to the transaction")

        patiently(attempt, "adding partitions", _PATIENCE_S, self._lost)
        self._added |= set(new)

    def write(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        """One record of the driver's own, the only one that it sends to that partition."""
        self.add_partitions([(topic, partition)])
        builder = BatchBuilder()
        builder.append(key, value, int(time.time() * 1000))
        batch = builder.build(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=0,
            transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=partition, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=_ALL_REPLICAS,
            timeout_ms=30_000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
        )

        def attempt() -> None:
            leader = self.cluster.leader(topic, partition)
            answer = leader.call(request, highest_version(self.protocol, 0))
            code = answer.responses[0].partition_responses[0].error_code
            if code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                check(code, f"writing to {topic}-{partition}")

        patiently(attempt, f"writing to {topic}", _PATIENCE_S, self.cluster.forget_leaders)

    def commit_offsets(self, group: str, offsets: Mapping[Target, int]) -> None:
        """The source's position, so that tools can show its lag."""
        if not offsets:
            return
        if self.protocol == 1:
            self._add_offsets(group)
        part_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
        names = dict.fromkeys(topic for topic, _ in offsets)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        part_class(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata="",
                        )
                        for (topic, partition), offset in sorted(offsets.items())
                        if topic == name
                    ],
                )
                for name in names
            ],
        )

        def attempt() -> None:
            coordinator = self.cluster.coordinator(GROUP, group)
            answer = coordinator.call(request, highest_version(self.protocol, 28))
            for topic in answer.topics:
                for entry in topic.partitions:
                    check(entry.error_code, f"committing offsets under group {group!r}")

        def lost() -> None:
            self.cluster.forget_coordinator(GROUP, group)

        patiently(attempt, f"committing offsets under {group!r}", _PATIENCE_S, lost)

    def refuse_live_group(self, group: str) -> None:
        """A producer may commit offsets that a group's members do not know of, and confuse them."""

        def attempt() -> int:
            coordinator = self.cluster.coordinator(GROUP, group)
            classic = coordinator.call(DescribeGroupsRequest(groups=[group])).groups[0]
            # A group that does not exist is an answer; a coordinator that cannot tell is not.
            if ErrorCode.of(classic.error_code).retriable:
                raise error_for(classic.error_code, f"looking at group {group!r}")
            if classic.members or not coordinator.speaks(ConsumerGroupDescribeRequest):
                return len(classic.members)
            answer = coordinator.call(ConsumerGroupDescribeRequest(group_ids=[group]))
            return len(answer.groups[0].members)

        def lost() -> None:
            self.cluster.forget_coordinator(GROUP, group)

        members = patiently(attempt, f"looking at group {group!r}", _PATIENCE_S, lost)
        if members:
            raise RefusedError(
                f"group {group!r} has {members} live members, so the query cannot commit its"
                " offsets under that name: give the sink a group that only this query uses"
            )

    def _add_offsets(self, group: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )

        def attempt() -> None:
            answer = self._coordinator().call(request)
            check(answer.error_code, f"adding group {group!r} to the transaction")

        patiently(attempt, "adding offsets", _PATIENCE_S, self._lost)

    # ------------------------------------------------------------------ the end

    def commit(self) -> CommitOutcome:
        """Ask until there is an answer. Anything but a clear yes is doubt: the ledger knows."""
        code = self._end(committed=True)
        if code == ErrorCode.NONE:
            # The older protocol leaves the epoch as it is: the next transaction needs another.
            self._spent = self.protocol == 1
            return CommitOutcome.COMMITTED
        log.warning("commit of %s is in doubt (%s)", self.transactional_id, _name(code))
        return CommitOutcome.IN_DOUBT

    def abort(self) -> None:
        """After it no borrower of this attempt can write any more."""
        if self.protocol == 1 or self._end(committed=False) != ErrorCode.NONE:
            self.recover()

    def _end(self, committed: bool) -> int | None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )

        def attempt() -> int:
            answer = self._coordinator().call(request, highest_version(self.protocol, 26))
            code = ErrorCode.of(answer.error_code)
            if code.retriable:
                raise error_for(code, "ending the transaction")
            if code is ErrorCode.NONE and answer.producer_id >= 0:
                self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            return int(code)

        try:
            return patiently(attempt, "ending the transaction", _PATIENCE_S, self._lost)
        except UnreachableError:
            return None

    def _coordinator(self) -> BlockingConnection:
        return self.cluster.coordinator(TRANSACTION, self.transactional_id)

    def _lost(self) -> None:
        self.cluster.forget_coordinator(TRANSACTION, self.transactional_id)


def _name(code: int | None) -> str:
    return "no answer" if code is None else ErrorCode.of(code).name
