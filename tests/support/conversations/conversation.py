"""A scripted exchange with a broker, told in a way that can be compared with another broker's.

Each request is sent as it stands, over one raw connection, and its answer becomes a line of the
`transcript`. What differs by chance (producer ids, names of topics, clocks) is replaced by symbols
in the order of first sight, so that two brokers that behave alike leave the same lines.
"""

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.conversations.raw_client import RawClient

from semel.wire.batches import BatchBuilder, headers, records_of
from semel.wire.errors import ErrorCode
from semel.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.describe_producers import DescribeProducersRequest
from semel.wire.messages.describe_transactions import DescribeTransactionsRequest
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.list_offsets import ListOffsetsRequest
from semel.wire.messages.list_transactions import ListTransactionsRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest
from semel.wire.messages.produce import ProduceRequest
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from semel.wire.messages.write_txn_markers import WriteTxnMarkersRequest

SETTLE_TIMEOUT_S = 10
# A broker may be busy where another is not: these are asked again, and only the last answer counts.
UNSETTLED = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,  # how Produce says that the coordinator is busy
}
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


@dataclass(frozen=True)
class Session:
    """What a producer holds: its id and epoch."""

    producer_id: int
    epoch: int

    def older(self, by: int = 1) -> "Session":
        return Session(self.producer_id, self.epoch - by)

    def newer(self, by: int = 1) -> "Session":
        return Session(self.producer_id, self.epoch + by)


class Conversation:
    def __init__(self, bootstrap: str, partitions: int = 3) -> None:
        self._bootstrap, self._partitions = bootstrap, partitions
        self.client = RawClient(bootstrap)
        suffix = uuid.uuid4().hex[:12]
        self.topic, self.group, self.transactional_id = f"t-{suffix}", f"g-{suffix}", f"x-{suffix}"
        self.transcript: list[str] = []
        self.last_error: ErrorCode | None = None
        self._producers: dict[int, str] = {-1: "none"}
        self._sequences: dict[tuple[Session, int], int] = {}
        topic = CreateTopicsRequest.CreatableTopic(
            name=self.topic, num_partitions=partitions, replication_factor=1
        )
        self.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        self._wait_until_led()
        self._find_coordinators()

    def reconnect(self) -> None:
        """Go on where we were with a broker that was away."""
        self.client.close()
        self.client = RawClient(self._bootstrap)
        self._wait_until_led()
        self._find_coordinators()

    # Requests of a transaction. Each answers with its error; `settle` asks again while busy.

    def init(
        self,
        expected: Session | None = None,
        timeout_ms: int = 60_000,
        version: int = 4,
        transactional_id: str | None = "",
        settle: bool = True,
    ) -> Session:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id if transactional_id == "" else transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        if expected is not None:
            request.producer_id, request.producer_epoch = expected.producer_id, expected.epoch
        answer = self._ask(request, version, lambda a: [a.error_code], settle)
        session = Session(answer.producer_id, answer.producer_epoch)
        shown = f"{self._show(expected)}, timeout {timeout_ms}"
        self._tell("InitProducerId", version, shown, answer.error_code, self._show(session))
        return session

    def add(
        self,
        session: Session,
        partitions: Iterable[int] = (0,),
        version: int = 3,
        topic: str | None = None,
    ) -> list[int]:
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                name=topic or self.topic, partitions=list(partitions)
            )
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=session.producer_id,
            v3_and_below_producer_epoch=session.epoch,
            v3_and_below_topics=topics,
        )
        answer = self._ask(request, version, _errors_of_add)
        errors = _errors_of_add(answer)
        self._tell("AddPartitionsToTxn", version, self._show(session), *errors)
        return errors

    def add_batched(
        self, session: Session, partitions: Iterable[int] = (0,), verify_only: bool = False
    ) -> list[int]:
        """AddPartitionsToTxn as brokers send it to each other (v5)."""
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                    name=self.topic, partitions=list(partitions)
                )
            ],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        answer = self._ask(request, 5, _errors_of_batched_add)
        errors = _errors_of_batched_add(answer)
        self._tell("AddPartitionsToTxn", 5, f"{self._show(session)} verify={verify_only}", *errors)
        return errors

    def produce(
        self,
        session: Session,
        partition: int = 0,
        sequence: int | None = None,
        count: int = 1,
        version: int = 11,
        transactional: bool = True,
        value: bytes = b"v",
    ) -> int:
        key = (session, partition)
        first = self._sequences.get(key, 0) if sequence is None else sequence
        builder = BatchBuilder()
        now_ms = time.time_ns() // 1_000_000  # older records might fall to retention meanwhile
        for _ in range(count):
            builder.append(None, value, now_ms)
        batch = builder.build(
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            base_sequence=first,
            transactional=transactional,
        )
        data = ProduceRequest.PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            transactional_id=self.transactional_id if transactional else None,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])],
        )
        answer = self._ask(request, version, _errors_of_produce)
        [result] = answer.responses[0].partition_responses
        if result.error_code == 0:
            self._sequences[key] = first + count
        shown = f"{self._show(session)} p{partition} seq {first}+{count}"
        if not transactional:
            shown += " outside"
        self._tell("Produce", version, shown, result.error_code, result.base_offset)
        error: int = result.error_code
        return error

    def end(self, session: Session, commit: bool, version: int = 4, settle: bool = True) -> Session:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            committed=commit,
        )
        answer = self._ask(request, version, lambda a: [a.error_code], settle)
        outcome = "commit" if commit else "abort"
        told: list[Any] = [answer.error_code]
        after = session
        if version >= 5:
            after = Session(answer.producer_id, answer.producer_epoch)
            told.append(self._show(after))
        self._tell("EndTxn", version, f"{self._show(session)} {outcome}", *told)
        return after

    def add_offsets(self, session: Session, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            group_id=self.group,
        )
        answer = self._ask(request, version, lambda a: [a.error_code])
        self._tell("AddOffsetsToTxn", version, self._show(session), answer.error_code)
        error: int = answer.error_code
        return error

    def commit_offset(
        self,
        session: Session,
        offset: int,
        version: int = 3,
        generation: int = -1,
        member: str = "",
        instance: str | None = None,
    ) -> int:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata="m"
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.group,
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=self.topic, partitions=[partition]
                )
            ],
        )
        if version >= 3:
            request.generation_id, request.member_id = generation, member
            request.group_instance_id = instance
        answer = self._ask(request, version, _errors_of_offset_commit)
        [error] = _errors_of_offset_commit(answer)
        self._tell("TxnOffsetCommit", version, f"{self._show(session)} offset {offset}", error)
        return error

    def write_marker(
        self,
        session: Session,
        commit: bool,
        coordinator_epoch: int = 0,
        partition: int = 0,
        version: int = 1,
        transaction_version: int = 0,
    ) -> int:
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=session.producer_id,
            producer_epoch=session.epoch,
            transaction_result=commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
            topics=[
                WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                    name=self.topic, partition_indexes=[partition]
                )
            ],
        )
        answer = self._ask(WriteTxnMarkersRequest(markers=[marker]), version, lambda a: [])
        error: int = answer.markers[0].topics[0].partitions[0].error_code
        shown = f"{self._show(session)} coordinator {coordinator_epoch} tv {transaction_version}"
        self._tell("WriteTxnMarkers", version, shown, error)
        return error

    # Looking: what readers and operators see.

    def look(self) -> None:
        """Everything a reader or operator can see of this conversation, on every partition."""
        self.describe()
        for partition in range(3):
            self.offsets(partition)
            self.read(READ_UNCOMMITTED, partition)
            self.read(READ_COMMITTED, partition)
            self.producers(partition)

    def describe(self) -> str:
        answer = self.client.ask(
            DescribeTransactionsRequest(transactional_ids=[self.transactional_id]), 0
        )
        [state] = answer.transaction_states
        session = Session(state.producer_id, state.producer_epoch)
        partitions = {
            ("t" if topic.topic == self.topic else topic.topic): sorted(topic.partitions)
            for topic in state.topics
            if topic.topic != "__consumer_offsets"  # its partition hangs on the group's random name
        }
        shown = f"{state.transaction_state} {self._show(session)} {partitions}"
        self._tell("DescribeTransactions", 0, "", state.error_code, shown)
        found: str = state.transaction_state
        return found

    def list_states(self, states: Iterable[str] = (), pattern: str | None = None) -> None:
        request = ListTransactionsRequest(
            state_filters=list(states),
            transactional_id_pattern=self.transactional_id if pattern is None else pattern,
        )
        answer = self.client.ask(request, 2)
        mine = [
            f"{self._name(row.producer_id)} {row.transaction_state}"
            for row in answer.transaction_states
            if row.transactional_id == self.transactional_id
        ]
        unknown = sorted(answer.unknown_state_filters)
        self._tell("ListTransactions", 2, f"{sorted(states)}", answer.error_code, mine, unknown)

    def offsets(self, partition: int = 0) -> None:
        for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
            wanted = ListOffsetsRequest.ListOffsetsPartition(
                partition_index=partition, timestamp=-1
            )
            topic = ListOffsetsRequest.ListOffsetsTopic(name=self.topic, partitions=[wanted])
            request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[topic])
            [found] = self.client.ask(request, 7).topics[0].partitions
            told = (found.error_code, found.offset)
            self._tell("ListOffsets", 7, f"p{partition} isolation {isolation}", *told)

    def read(self, isolation: int, partition: int = 0) -> None:
        wanted = FetchRequest.FetchPartition(
            partition=partition, fetch_offset=0, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=isolation,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=self.topic, partitions=[wanted])],
        )
        [found] = self.client.ask(request, 12).responses[0].partitions
        aborted = found.aborted_transactions
        if aborted is not None:
            aborted = [f"{self._name(a.producer_id)} from {a.first_offset}" for a in aborted]
        told = (
            found.high_watermark,
            found.last_stable_offset,
            aborted,
            self._batches(found.records),
        )
        self._tell("Fetch", 12, f"p{partition} isolation {isolation}", found.error_code, *told)

    def producers(self, partition: int = 0) -> None:
        topic = DescribeProducersRequest.TopicRequest(
            name=self.topic, partition_indexes=[partition]
        )
        [found] = self.client.ask(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions
        rows = sorted(
            f"{self._name(p.producer_id)}/{p.producer_epoch} last {p.last_sequence} "
            f"open {p.current_txn_start_offset}"
            for p in found.active_producers
        )
        self._tell("DescribeProducers", 0, f"p{partition}", found.error_code, rows)

    def committed(self, require_stable: bool = True, settle: bool = False) -> None:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=self.topic, partition_indexes=[0])
        request = OffsetFetchRequest(
            group_id=self.group, topics=[topic], require_stable=require_stable
        )
        answer = self._ask(request, 7, lambda answer: [answer.error_code])
        [found] = answer.topics[0].partitions
        while settle and found.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
            time.sleep(0.05)
            answer = self.client.ask(request, 7)
            [found] = answer.topics[0].partitions
        told = (answer.error_code, found.error_code, found.committed_offset, found.metadata)
        self._tell("OffsetFetch", 7, f"stable {require_stable}", *told)

    def wait_for(self, state: str) -> None:
        """Wait until the transaction is in this state: timers differ, their outcome must not."""
        found = self._wait_until(lambda found: found == state, SETTLE_TIMEOUT_S)
        if found != state:
            raise TimeoutError(f"still {found}, not {state}")

    def settles(self, within_s: float = 2.0) -> bool:
        """Wait until no transaction is between its decision and its markers."""
        found = self._wait_until(lambda found: not found.startswith("Prepare"), within_s)
        if found.startswith("Prepare"):
            self._tell("DescribeTransactions", 0, "", f"stays {found}")
            return False
        return True

    def _wait_until(self, wanted: Callable[[str], bool], within_s: float) -> str:
        """The transaction's state, once it is wanted or time is up."""
        deadline = time.monotonic() + within_s
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        while True:
            [found] = self.client.ask(request, 0).transaction_states
            state: str = found.transaction_state
            if wanted(state) or time.monotonic() > deadline:
                return state
            time.sleep(0.02)

    def close(self) -> None:
        self.client.close()

    # Helpers.

    def _ask(
        self,
        request: Any,
        version: int,
        errors: Callable[[Any], Iterable[int]],
        settle: bool = True,
    ) -> Any:
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while True:
            answer = self.client.ask(request, version)
            busy = settle and any(error in UNSETTLED for error in errors(answer))
            if not busy or time.monotonic() > deadline:
                return answer
            time.sleep(0.01)

    def _wait_until_led(self) -> None:
        """A broker may answer CreateTopics before it leads the new partitions."""
        wanted = [
            ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1)
            for index in range(self._partitions)
        ]
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self.topic, partitions=wanted)
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        deadline = time.monotonic() + SETTLE_TIMEOUT_S
        while any(p.error_code for p in self.client.ask(request, 7).topics[0].partitions):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.topic} has no leader")
            time.sleep(0.01)

    def _find_coordinators(self) -> None:
        for key, kind in ((self.transactional_id, 1), (self.group, 0)):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            self._ask(request, 4, lambda a: [a.coordinators[0].error_code])

    def _batches(self, records: memoryview | None) -> list[str]:
        told = []
        for header in headers(records or b""):
            kind = "control" if header.is_control else "data"
            who = self._show(Session(header.producer_id, header.producer_epoch))
            keys = ""
            if header.is_control:
                [record] = records_of(header)
                keys = f" type {int.from_bytes((record.key or b'')[2:4], 'big')}"
            told.append(f"{kind} {header.base_offset}-{header.last_offset} {who}{keys}")
        return told

    def _name(self, producer_id: int) -> str:
        return self._producers.setdefault(producer_id, f"P{len(self._producers)}")

    def _show(self, session: Session | None) -> str:
        return "-" if session is None else f"{self._name(session.producer_id)}/{session.epoch}"

    def _tell(self, api: str, version: int, asked: str, *answered: Any) -> None:
        code, *rest = answered
        self.last_error = ErrorCode.of(code) if isinstance(code, int) else None
        shown = code if self.last_error is None else self.last_error.name
        self.transcript.append(f"{api} v{version} {asked} -> {shown} {rest or ''}".rstrip())


def _errors_of_add(answer: Any) -> list[int]:
    """Sorted: a broker may order partitions as it likes."""
    return sorted(
        partition.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    )


def _errors_of_batched_add(answer: Any) -> list[int]:
    partitions = sorted(
        partition.partition_error_code
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for partition in topic.results_by_partition
    )
    return [answer.error_code, *partitions]


def _errors_of_produce(answer: Any) -> list[int]:
    return [p.error_code for topic in answer.responses for p in topic.partition_responses]


def _errors_of_offset_commit(answer: Any) -> list[int]:
    return [p.error_code for topic in answer.topics for p in topic.partitions]
