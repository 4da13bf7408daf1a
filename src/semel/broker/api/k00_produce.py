"""Produce: append one record batch to each of the named partitions.

Who may: WRITE on each TOPIC, and on the TRANSACTIONAL_ID of a transactional batch. Answers when the
batches are written (acks 1) or durable (acks all; the same under `durability=os`); acks 0 gets no
answer, but a closed connection if anything was refused, as in Kafka. Versions 3-13; 0-2 are
advertised, because older librdkafka turns compression off otherwise, and refused. Topics by id from
13 on; from 12 on partitions join the transaction by being written to (KIP-890). Not here: the rules
for batches (`core/partition`), what is looked for inside of them (`broker/partitions/opening`) and
how one is written (`broker/partitions/partition`).
"""

from __future__ import annotations

import logging
from asyncio import Future
from collections.abc import Coroutine, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from semel.broker.access.producing import is_denied_transactional
from semel.broker.failures import storage_code
from semel.broker.partitions.opening import MUST_OPEN, Opened
from semel.broker.partitions.partition import Partition
from semel.broker.replies import InTurn, NowOrLater, when_durable
from semel.core.partition.admission import COMPRESSION, TRANSACTIONAL, Refusal
from semel.core.partition.verification import AT_ONCE, Guard
from semel.store.interface import Buffer, Ticket
from semel.wire.batches import BatchHeader, OldFormatError, header_at
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.messages import ADVERTISED
from semel.wire.messages.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Topic
    from semel.broker.context import Context
    from semel.broker.coordinators.errors import Errors

API_KEY = 0
VERSIONS = ADVERTISED[API_KEY]

logger = logging.getLogger("semel.produce")

KNOWN_ACKS = ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
ZSTD_SINCE = 7
TOPIC_IDS_SINCE = 13
IMPLICIT_ADDING_SINCE = 12
#: Refusals that do not tell the log's start (ReplicaManager.appendRecordsToLeader).
WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE})

Answer = ProduceResponse.PartitionProduceResponse
RecordError = ProduceResponse.BatchIndexAndErrorMessage

# One partition's share of the request, on its way to the log.
Write = tuple[Answer, Partition, BatchHeader]
Guarded = tuple[Write, Guard | None]
#: None: with acks 0 there is no answer.
Response = ProduceResponse | None
#: What a coroutine ends with: appended, but perhaps not durable yet.
Later = NowOrLater[Response]

DELETED = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic has been deleted.")
UNGUARDED = repeat(None)
VERIFIED_AT_ONCE = repeat(AT_ONCE)


def handle(
    ctx: Context, request: ProduceRequest, version: int
) -> NowOrLater[Response] | InTurn[Later]:
    response = ProduceResponse()
    writes: list[Write] = []
    attributes = 0
    for data in request.topic_data:
        topic = _find_topic(ctx, data, version)
        result = ProduceResponse.TopicProduceResponse(name=data.name, topic_id=data.topic_id)
        response.responses.append(result)
        denied = _topic_refusal(ctx, request, data, topic, version)
        for part in data.partition_data:
            answer = Answer(index=part.index, base_offset=-1)
            result.partition_responses.append(answer)
            write = denied or _prepare(ctx, topic, answer, part.records, version)
            if isinstance(write, Refusal):
                if is_denied_transactional(ctx, request):
                    return _deny_all(ctx, request)
                refuse(answer, write, topic and f"{topic.name}-{part.index}")
            else:
                attributes |= write[2].attributes | write[1].opens
                writes.append(write)
    if attributes & MUST_OPEN:
        return _open_first(ctx, request, response, writes, version)
    if attributes & TRANSACTIONAL:
        return _transactional(ctx, request, response, writes, version)
    return _append_all(ctx, request, response, writes, UNGUARDED)


def _go_on(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    version: int,
    attributes: int,
) -> NowOrLater[Response] | InTurn[Later]:
    """As in `handle`, of what was opened."""
    if attributes & TRANSACTIONAL:
        return _transactional(ctx, request, response, writes, version)
    return _append_all(ctx, request, response, writes, UNGUARDED)


# Batches that must be opened


def _open_first(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    version: int,
) -> NowOrLater[Response] | InTurn[Later]:
    """A look into the batches, then the usual way. Those of a request that is refused as a whole
    are not opened."""
    attributes = 0
    for _, _, batch in writes:
        attributes |= batch.attributes
    if attributes & TRANSACTIONAL and _request_refusal(ctx, request, writes) is not None:
        return _go_on(ctx, request, response, writes, version, attributes)
    now_ms = ctx.now_ms()
    opened = []
    for _, partition, batch in writes:
        found = partition.opened_at_once(batch, now_ms)
        if found is None:
            return _open_later(ctx, request, response, writes, version)
        opened.append(found)
    return _go_on(ctx, request, response, _accepted(writes, opened), version, attributes)


async def _open_later(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    version: int,
) -> Later:
    """A coroutine, so that what the client sends next does not overtake these batches; it ends with
    their append."""
    batches = [(partition, batch) for _, partition, batch in writes]
    opened = await ctx.partitions.opener.open_all(batches, ctx.now_ms())
    accepted = []
    attributes = 0
    for write in _accepted(writes, opened):
        answer, partition, batch = write
        if partition.is_deleted:
            refuse(answer, DELETED, partition)
        else:
            accepted.append(write)
            attributes |= batch.attributes
    going_on = _go_on(ctx, request, response, accepted, version, attributes)
    return await going_on if isinstance(going_on, Coroutine) else going_on


def _accepted(writes: list[Write], opened: Sequence[Opened]) -> list[Write]:
    accepted = []
    for (answer, partition, _), found in zip(writes, opened, strict=True):
        if isinstance(found, Refusal):
            refuse(answer, found, partition)
            answer.log_start_offset = partition.log.start_offset
        else:
            accepted.append((answer, partition, found))
    return accepted


def only_batch(records: Buffer | None, version: int) -> BatchHeader | Refusal:
    """The one batch that a partition gets (ProduceRequest.validateRecords)."""
    if not records:
        return Refusal(ErrorCode.INVALID_RECORD, "There is no record batch for this partition.")
    try:
        batch = header_at(records)
    except OldFormatError as problem:
        return Refusal(ErrorCode.INVALID_RECORD, f"The batch is refused: {problem}.")
    except ProtocolError as problem:
        return Refusal(ErrorCode.CORRUPT_MESSAGE, f"The batch is refused: {problem}.")
    if batch.size != len(records):
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"A partition takes exactly one batch; {len(records) - batch.size} bytes follow it.",
        )
    if version < ZSTD_SINCE and batch.attributes & COMPRESSION == Compression.ZSTD:
        return Refusal(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce v{version} does not know zstd."
        )
    return batch


def refuse(answer: Answer, refusal: Refusal, where: object) -> None:
    answer.error_code = refusal.error
    answer.error_message = refusal.message
    answer.record_errors = [
        RecordError(batch_index=fault.number, batch_index_error_message=fault.message)
        for fault in refusal.records
    ]
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
    ctx: Context,
    request: ProduceRequest,
    data: ProduceRequest.TopicProduceData,
    topic: Topic | None,
    version: int,
) -> Refusal | None:
    if topic is None:
        return _absence(ctx, data, version)
    if not ctx.may("WRITE", "TOPIC", topic.name):
        return _topic_denied(topic.name)
    if request.acks not in KNOWN_ACKS:
        return Refusal(ErrorCode.INVALID_REQUIRED_ACKS, f"There is no acks={request.acks}.")
    if topic.is_internal:
        return Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is written by the broker alone."
        )
    replicas = topic.config["min.insync.replicas"]
    if request.acks == ACKS_ALL and replicas > 1:
        message = f"{topic.name} asks for {replicas} replicas in sync, and there is one."
        return Refusal(ErrorCode.NOT_ENOUGH_REPLICAS, message)
    return None


def _absence(ctx: Context, data: ProduceRequest.TopicProduceData, version: int) -> Refusal:
    """Whether a topic of a name is there is told to who may write to it."""
    if version >= TOPIC_IDS_SINCE:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
    if not ctx.may("WRITE", "TOPIC", data.name):
        return _topic_denied(data.name)
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no topic of this name.")


def _topic_denied(name: str) -> Refusal:
    return Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"Writing to {name} is denied.")


def _prepare(
    ctx: Context, topic: Topic | None, answer: Answer, records: Buffer | None, version: int
) -> Write | Refusal:
    assert topic is not None
    partition = ctx.partitions.find(topic.name, answer.index)
    if partition is None:
        return Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{topic.name} has {topic.partition_count} partitions, no number {answer.index}.",
        )
    batch = only_batch(records, version)
    return batch if isinstance(batch, Refusal) else (answer, partition, batch)


def _append_all(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    guards: Iterable[Guard | None],
) -> NowOrLater[Response]:
    waiting: list[tuple[Answer, Ticket]] = []
    for write, guard in zip(writes, guards, strict=False):
        answer, partition, batch = write
        appended = partition.append(batch, guard)
        if isinstance(appended, Refusal):
            _refuse_write(ctx, write, appended)
            if appended.error not in WITHOUT_LOG_START:
                answer.log_start_offset = partition.log.start_offset
            continue
        answer.base_offset, answer.log_append_time_ms, ticket = appended
        answer.log_start_offset = partition.log.start_offset
        if not ticket.durable:
            waiting.append((answer, ticket))
    if request.acks == ACKS_NONE:
        _close_if_refused(ctx, response)
        return None
    if request.acks == ACKS_LEADER or not waiting:
        return response
    return _when_durable(ctx, request, response, waiting)


def _when_durable(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    waiting: list[tuple[Answer, Ticket]],
) -> Future[Response]:
    def respond() -> Response:
        for answer, ticket in waiting:
            _tell_whether_durable(answer, ticket)
        return response

    tickets = [ticket for _, ticket in waiting]
    return when_durable(ctx.broker.loop, tickets, respond, request.timeout_ms)


def _tell_whether_durable(answer: Answer, ticket: Ticket) -> None:
    if ticket.durable:
        return
    answer.base_offset = -1
    if ticket.error is not None:
        answer.error_code = storage_code(ticket.error)
        answer.error_message = str(ticket.error)
    else:
        answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        answer.error_message = "Written, but not yet durable."


def _refuse_write(ctx: Context, write: Write, refusal: Refusal) -> None:
    """A producer that was fenced is told why, if its coordinator remembers."""
    answer, partition, batch = write
    refuse(answer, refusal, partition)
    if refusal.error in FENCED and batch.attributes & TRANSACTIONAL:
        why = ctx.transactions.timeline.why(batch.producer_id, batch.producer_epoch)
        if why is not None:
            answer.error_message = f"{answer.error_message} It was {why}."


def _close_if_refused(ctx: Context, response: ProduceResponse) -> None:
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
) -> NowOrLater[Response] | InTurn[Later]:
    refusal = _request_refusal(ctx, request, writes)
    if refusal is not None:
        return _refuse_all(ctx, request, response, writes, refusal)
    name = request.transactional_id
    assert name is not None
    if version < IMPLICIT_ADDING_SINCE and _all_included(ctx, name, writes):
        return _append_all(ctx, request, response, writes, VERIFIED_AT_ONCE)
    guarded = _ask_guards(ctx, writes, version)
    unverified = [write for write, guard in guarded if guard is not None]
    if not unverified:
        return _append_guarded(ctx, request, response, guarded)
    first = unverified[0][2]
    verdicts = ctx.transactions.verify(
        name,
        first.producer_id,
        first.producer_epoch,
        [(partition.topic.name, partition.index) for _, partition, _ in unverified],
        version=version,
        add=version >= IMPLICIT_ADDING_SINCE,
    )
    if isinstance(verdicts, Future):
        return _append_verified_later(ctx, request, response, guarded, verdicts)
    return _append_guarded(ctx, request, response, _verified(ctx, guarded, verdicts))


async def _append_verified_later(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    guarded: list[Guarded],
    verdicts: Future[Errors],
) -> Later:
    """A coroutine, so that what the client sends next does not overtake these batches."""
    agreed = _verified(ctx, guarded, await verdicts)
    return _append_guarded(ctx, request, response, agreed)


def _append_guarded(
    ctx: Context, request: ProduceRequest, response: ProduceResponse, guarded: list[Guarded]
) -> NowOrLater[Response]:
    writes = [write for write, _ in guarded]
    return _append_all(ctx, request, response, writes, [guard for _, guard in guarded])


def _refuse_all(
    ctx: Context,
    request: ProduceRequest,
    response: ProduceResponse,
    writes: list[Write],
    refusal: Refusal,
) -> NowOrLater[Response]:
    for answer, partition, _ in writes:
        refuse(answer, refusal, partition)
    return _append_all(ctx, request, response, [], UNGUARDED)


def _request_refusal(ctx: Context, request: ProduceRequest, writes: list[Write]) -> Refusal | None:
    """Why a request with transactional batches is refused as a whole."""
    name = request.transactional_id
    if name is None or not ctx.may("WRITE", "TRANSACTIONAL_ID", name):
        return _denied(name)
    if len(writes) > 1 and len({batch.producer_id for _, _, batch in writes}) > 1:
        return Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "The batches of a transactional request must have one producer id.",
        )
    return None


def _deny_all(ctx: Context, request: ProduceRequest) -> NowOrLater[Response]:
    response = ProduceResponse()
    refusal = _denied(request.transactional_id)
    for data in request.topic_data:
        result = ProduceResponse.TopicProduceResponse(name=data.name, topic_id=data.topic_id)
        response.responses.append(result)
        for part in data.partition_data:
            answer = Answer(index=part.index, base_offset=-1)
            result.partition_responses.append(answer)
            refuse(answer, refusal, f"{data.name or data.topic_id}-{part.index}")
    return _append_all(ctx, request, response, [], UNGUARDED)


def _denied(name: str | None) -> Refusal:
    return Refusal(
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        f"Writing with the transactional id {name!r} is denied.",
    )


def _all_included(ctx: Context, name: str, writes: list[Write]) -> bool:
    """Whether every batch belongs to a transaction that its coordinator, here in this process, says
    includes its partition. They are then appended in the same turn, so no marker can come in
    between, and no guard is needed; unless an earlier question is still open, whose batch must not
    be overtaken."""
    includes = ctx.transactions.includes
    for _, partition, batch in writes:
        producer_id, epoch, state = batch.producer_id, batch.producer_epoch, partition.state
        if not batch.attributes & TRANSACTIONAL or producer_id in state.verifications:
            return False
        if not (
            state.has_open(producer_id, epoch)
            or includes(name, producer_id, epoch, (partition.topic.name, partition.index))
        ):
            return False
    return True


def _ask_guards(ctx: Context, writes: list[Write], version: int) -> list[Guarded]:
    """Those that go on; a guard says that their coordinator must be asked first."""
    guarded: list[Guarded] = []
    begins_at_zero = version >= IMPLICIT_ADDING_SINCE
    for write in writes:
        _, partition, batch = write
        guard = None
        if batch.attributes & TRANSACTIONAL and batch.producer_id >= 0:
            asked = partition.state.ask_verification(batch, begins_at_zero, ctx.now_ms())
            if isinstance(asked, Refusal):
                _refuse_write(ctx, write, asked)
                continue
            guard = asked
        guarded.append((write, guard))
    return guarded


def _verified(ctx: Context, guarded: list[Guarded], verdicts: Errors) -> list[Guarded]:
    agreed = []
    for write, guard in guarded:
        partition = write[1]
        error = verdicts.get((partition.topic.name, partition.index), ErrorCode.NONE)
        if error == ErrorCode.NONE:
            agreed.append((write, guard))
        else:
            message = f"The transaction's coordinator does not agree: {error.meaning}."
            _refuse_write(ctx, write, Refusal(error, message))
    return agreed
