"""Produce: append one record batch to each of the named partitions.

Who may: WRITE on each TOPIC, and on the TRANSACTIONAL_ID of a transactional batch. Answers when the
batches are written (acks 1) or durable (acks all; the same under `durability=os`); acks 0 gets no
answer, but a closed connection if anything was refused, as in Kafka. Versions 3-13; 0-2 are
advertised, because older librdkafka turns compression off otherwise, and refused. Topics by id from
13 on; from 12 on partitions join the transaction by being written to (KIP-890). Not here: the rules
for batches (`core/partition`) and how one is written (`broker/partition`).
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections.abc import Awaitable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from semel.broker.partition import Partition
from semel.broker.produce_waiting import when_durable
from semel.core.partition.admission import COMPRESSION, TRANSACTIONAL, Refusal
from semel.core.partition.verification import Guard
from semel.store.interface import DURABLE, Ticket
from semel.wire.batches import BatchHeader, OldFormatError, header_at
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.messages import ADVERTISED
from semel.wire.messages.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from semel.broker.catalog import Topic
    from semel.broker.context import Context

API_KEY = 0
VERSIONS = ADVERTISED[API_KEY]

logger = logging.getLogger("semel.produce")

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
ZSTD_SINCE = 7
TOPIC_IDS_SINCE = 13
IMPLICIT_ADDING_SINCE = 12
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE})

Answer = ProduceResponse.PartitionProduceResponse
RecordError = ProduceResponse.BatchIndexAndErrorMessage
Verdicts = Mapping[tuple[str, int], ErrorCode]


class Write:
    """One partition's share of the request, on its way to the log."""

    __slots__ = ("answer", "batch", "guard", "partition", "ticket")

    def __init__(self, answer: Answer, partition: Partition, batch: BatchHeader) -> None:
        self.answer = answer
        self.partition = partition
        self.batch = batch
        self.guard: Guard | None = None
        self.ticket: Ticket = DURABLE

    def append(self) -> None:
        appended = self.partition.append(self.batch, self.guard)
        if isinstance(appended, Refusal):
            refuse(self.answer, appended, self.partition)
            return
        answer = self.answer
        answer.base_offset = appended.base_offset
        answer.log_append_time_ms = appended.append_time_ms
        answer.log_start_offset = self.partition.log.start_offset
        self.ticket = appended.ticket


def handle(ctx: Context, request: ProduceRequest, version: int) -> Any:
    response = ProduceResponse()
    writes: list[Write] = []
    attributes = 0
    for data in request.topic_data:
        topic = _find_topic(ctx, data, version)
        result = ProduceResponse.TopicProduceResponse(name=data.name, topic_id=data.topic_id)
        response.responses.append(result)
        denied = _topic_refusal(ctx, request, topic, version)
        for part in data.partition_data:
            answer = Answer(index=part.index, base_offset=-1)
            result.partition_responses.append(answer)
            write = denied or _prepare(ctx, topic, answer, part.records, version)
            if isinstance(write, Refusal):
                refuse(answer, write, topic and f"{topic.name}-{part.index}")
            else:
                attributes |= write.batch.attributes
                writes.append(write)
    if attributes & TRANSACTIONAL:
        return _transactional(ctx, request, response, writes, version)
    return _append_all(ctx, request, response, writes)


def only_batch(records: Any, version: int) -> BatchHeader | Refusal:
    """The one batch that a partition gets (ProduceRequest.validateRecords)."""
    try:
        batch = header_at(records) if records else None
    except OldFormatError as problem:
        return Refusal(ErrorCode.INVALID_RECORD, f"The batch is refused: {problem}.")
    except ProtocolError as problem:
        return Refusal(ErrorCode.CORRUPT_MESSAGE, f"The batch is refused: {problem}.")
    if batch is None:
        return Refusal(ErrorCode.INVALID_RECORD, "There is no record batch for this partition.")
    if batch.size != len(records):
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"A partition takes exactly one batch; {len(records) - batch.size} bytes follow it.",
        )
    if batch.attributes & COMPRESSION == Compression.ZSTD and version < ZSTD_SINCE:
        return Refusal(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce v{version} does not know zstd."
        )
    return batch


def refuse(answer: Answer, refusal: Refusal, where: object) -> None:
    answer.error_code = refusal.error
    answer.error_message = refusal.message
    if refusal.record is not None:
        answer.record_errors.append(
            RecordError(batch_index=refusal.record, batch_index_error_message=refusal.message)
        )
    logger.warning(
        "refused a batch: %s",
        refusal.message,
        extra={"partition": where, "error": refusal.error.name},
    )


def _find_topic(ctx: Context, data: ProduceRequest.TopicProduceData, version: int) -> Topic | None:
    if version >= TOPIC_IDS_SINCE:
        return ctx.catalog.topics_by_id.get(data.topic_id)
    return ctx.catalog.topics.get(data.name)


def _topic_refusal(
    ctx: Context, request: ProduceRequest, topic: Topic | None, version: int
) -> Refusal | None:
    if request.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
        return Refusal(ErrorCode.INVALID_REQUIRED_ACKS, f"There is no acks={request.acks}.")
    if topic is None:
        if version >= TOPIC_IDS_SINCE:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no topic of this name.")
    if not ctx.may("WRITE", "TOPIC", topic.name):
        return Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Writing to {topic.name} is denied.")
    if topic.is_internal:
        return Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is written by the broker alone."
        )
    replicas = topic.config["min.insync.replicas"]
    if request.acks == ACKS_ALL and replicas > 1:
        message = f"{topic.name} asks for {replicas} replicas in sync, and there is one."
        return Refusal(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    return None


def _prepare(
    ctx: Context, topic: Topic | None, answer: Answer, records: Any, version: int
) -> Write | Refusal:
    assert topic is not None
    partition = ctx.partitions.find(topic.name, answer.index)
    if partition is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{topic.name} has {topic.partition_count} partitions, no number {answer.index}.",
        )
    batch = only_batch(records, version)
    return batch if isinstance(batch, Refusal) else Write(answer, partition, batch)


def _append_all(
    ctx: Context, request: ProduceRequest, response: ProduceResponse, writes: list[Write]
) -> Any:
    waiting = []
    for write in writes:
        write.append()
        if not write.ticket.durable:
            waiting.append((write.answer, write.ticket))
    if request.acks == ACKS_NONE:
        return _unacknowledged(ctx, response)
    if request.acks == ACKS_LEADER or not waiting:
        return response
    return when_durable(ctx.broker.loop, response, waiting, request.timeout_ms)


def _unacknowledged(ctx: Context, response: ProduceResponse) -> None:
    """Nobody reads an answer: only a closed connection makes the client look again."""
    errors = {
        answer.error_code for topic in response.responses for answer in topic.partition_responses
    }
    if errors != {0}:
        ctx.connection.close("a Produce with acks 0 was refused")


# Transactions


def _transactional(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    version: int,
) -> Any:
    refusal = _transaction_refusal(ctx, request, writes)
    if refusal is not None:
        for write in writes:
            refuse(write.answer, refusal, write.partition)
        return _append_all(ctx, request, response, [])
    asked = writes
    writes, unverified = _ask_guards(ctx, writes, version)
    if not unverified:
        return _append_and_explain(ctx, request, response, writes, asked)
    first = unverified[0].batch
    verdicts = ctx.transactions.verify(
        request.transactional_id,
        first.producer_id,
        first.producer_epoch,
        [(write.partition.topic.name, write.partition.index) for write in unverified],
        version=version,
        add=version >= IMPLICIT_ADDING_SINCE,
    )
    if isinstance(verdicts, Future):
        return _append_verified_later(ctx, request, response, writes, asked, verdicts)
    return _append_and_explain(ctx, request, response, _verified(writes, verdicts), asked)


async def _append_verified_later(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    asked: list[Write],
    verdicts: Awaitable[Verdicts],
) -> Any:
    writes = _verified(writes, await verdicts)
    answer = _append_and_explain(ctx, request, response, writes, asked)
    return await answer if isawaitable(answer) else answer


def _append_and_explain(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    asked: list[Write],
) -> Any:
    """A producer that was fenced hears why, if its coordinator remembers."""
    answer = _append_all(ctx, request, response, writes)
    for write in asked:
        if write.answer.error_code in FENCED:
            why = ctx.transactions.timeline.why(write.batch.producer_id, write.batch.producer_epoch)
            if why is not None:
                write.answer.error_message = f"{write.answer.error_message} It was {why}."
    return answer


def _transaction_refusal(
    ctx: Context, request: ProduceRequest, writes: list[Write]
) -> Refusal | None:
    name = request.transactional_id
    if name is None or not ctx.may("WRITE", "TRANSACTIONAL_ID", name):
        return Refusal(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            f"Writing with the transactional id {name!r} is denied.",
        )
    if len({write.batch.producer_id for write in writes}) > 1:
        return Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "The batches of a transactional request must have one producer id.",
        )
    if ctx.transactions is None:
        return Refusal(ErrorCode.INVALID_TXN_STATE, "This broker coordinates no transactions.")
    return None


def _ask_guards(ctx: Context, writes: list[Write], version: int) -> tuple[list[Write], list[Write]]:
    """Those that go on, and of these the ones whose coordinator must be asked first."""
    going_on, unverified = [], []
    begins_at_zero = version >= IMPLICIT_ADDING_SINCE
    for write in writes:
        if write.batch.attributes & TRANSACTIONAL and write.batch.producer_id >= 0:
            asked = write.partition.state.ask_verification(
                write.batch, begins_at_zero, ctx.now_ms()
            )
            if isinstance(asked, Refusal):
                refuse(write.answer, asked, write.partition)
                continue
            if asked is not None:
                write.guard = asked
                unverified.append(write)
        going_on.append(write)
    return going_on, unverified


def _verified(writes: list[Write], verdicts: Verdicts) -> list[Write]:
    agreed = []
    for write in writes:
        partition = write.partition
        error = verdicts.get((partition.topic.name, partition.index), ErrorCode.NONE)
        if error == ErrorCode.NONE:
            agreed.append(write)
        else:
            message = f"The transaction's coordinator does not agree: {error.meaning}."
            refuse(write.answer, Refusal(error, message), partition)
    return agreed
