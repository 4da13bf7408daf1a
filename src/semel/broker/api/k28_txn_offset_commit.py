"""TxnOffsetCommit: a group's position, to count only if the transaction commits.

Who may: WRITE on the TRANSACTIONAL_ID, READ on the GROUP and on each TOPIC. Answers when it is
durable. Versions 0-5: 3 member, generation and instance id (KIP-447), 4 TRANSACTION_ABORTABLE,
5 the offsets partition joins the transaction by itself (KIP-890); before, AddOffsetsToTxn did that.
Not here: which member may commit: `core/groups/offsets/requests`; the verification:
`broker/coordinators/transactions`.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable
from typing import NamedTuple

from semel.broker.catalog.internal_topics import CONSUMER_OFFSETS
from semel.broker.context import Context
from semel.broker.coordinators.errors import Errors
from semel.broker.replies import InTurn, NowOrLater, settled, when
from semel.core.groups.commands import OffsetToCommit, TxnOffsetCommit
from semel.core.groups.replies import CommitReply
from semel.core.partition.admission import Refusal
from semel.core.partition.verification import Guard
from semel.wire.batches import NO_SEQUENCE
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

API_KEY = 28
VERSIONS = ADVERTISED[API_KEY]
LOAD_ERROR_SINCE, ABORTABLE_SINCE, IMPLICIT_ADDING_SINCE = 2, 4, 5

#: The version of Produce that hears the same errors from a verification as a version of ours.
_PRODUCE_VERSION_OF = {ABORTABLE_SINCE: 11, IMPLICIT_ADDING_SINCE: 12}
_OLD_PRODUCE_VERSION = 10

#: What a failed append means to the client: Kafka's CoordinatorOperationExceptionHelper.
_AS_COORDINATOR = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

Response = TxnOffsetCommitResponse
Partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


class _Batch(NamedTuple):
    """That of the offsets, which is built once it is verified."""

    producer_id: int
    producer_epoch: int
    base_sequence: int = NO_SEQUENCE


def handle(
    ctx: Context, request: TxnOffsetCommitRequest, version: int
) -> NowOrLater[Response] | InTurn[Response]:
    response, offsets, pending = _sorted_out(ctx, request)
    if not offsets:
        return response
    command = TxnOffsetCommit(
        request.group_id,
        request.producer_id,
        request.producer_epoch,
        tuple(offsets),
        request.member_id,
        request.generation_id,
        request.group_instance_id,
    )
    return _commit(
        ctx, request, command, version, lambda reply: _filled(response, pending, reply, version)
    )


def _sorted_out(
    ctx: Context, request: TxnOffsetCommitRequest
) -> tuple[TxnOffsetCommitResponse, list[OffsetToCommit], list[Partition]]:
    refused = _denial(ctx, request)
    response = TxnOffsetCommitResponse()
    offsets: list[OffsetToCommit] = []
    pending: list[Partition] = []
    for asked in request.topics:
        answered = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=asked.name)
        response.topics.append(answered)
        topic = ctx.catalog.topics.get(asked.name)
        error = refused
        if error is None and not ctx.may("READ", "TOPIC", asked.name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for partition in asked.partitions:
            index = partition.partition_index
            answer = Partition(partition_index=index)
            answered.partitions.append(answer)
            if error is not None:
                answer.error_code = error
            elif topic is None or not 0 <= index < topic.partition_count:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not request.group_id:
                answer.error_code = ErrorCode.INVALID_GROUP_ID
            else:
                pending.append(answer)
                offsets.append(
                    OffsetToCommit(
                        asked.name,
                        index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata or "",
                        topic.id,
                    )
                )
    return response, offsets, pending


def _denial(ctx: Context, request: TxnOffsetCommitRequest) -> ErrorCode | None:
    if not ctx.may("WRITE", "TRANSACTIONAL_ID", request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not ctx.may("READ", "GROUP", request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None


def _commit(
    ctx: Context,
    request: TxnOffsetCommitRequest,
    command: TxnOffsetCommit,
    version: int,
    respond: Callable[[CommitReply], Response],
) -> NowOrLater[Response] | InTurn[Response]:
    """Write the offsets once the coordinator of the transaction agrees that they belong to it."""
    partition = ctx.groups.shard_of(request.group_id).partition
    guard = partition.state.ask_verification(
        _Batch(request.producer_id, request.producer_epoch),
        begins_at_zero=False,
        now_ms=ctx.now_ms(),
    )
    if isinstance(guard, Refusal):
        return respond(command.refused(guard.error))
    if guard is None:
        return when(ctx.groups.submit(request.group_id, command), respond)
    verdicts = ctx.transactions.verify(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(CONSUMER_OFFSETS, partition.index)],
        version=_PRODUCE_VERSION_OF.get(version, _OLD_PRODUCE_VERSION),
        add=version >= IMPLICIT_ADDING_SINCE,
    )
    if isinstance(verdicts, Future):
        return _commit_later(ctx, command, guard, verdicts, respond)
    return when(_commit_verified(ctx, command, guard, verdicts), respond)


async def _commit_later(
    ctx: Context,
    command: TxnOffsetCommit,
    guard: Guard,
    verdicts: Future[Errors],
    respond: Callable[[CommitReply], Response],
) -> Response:
    """A coroutine, so that what the client sends next does not overtake these offsets."""
    errors = await verdicts
    known = ctx.catalog.topics_by_id
    if not all(offset.topic_id in known for offset in command.offsets):
        # One was deleted meanwhile: asked again, the client hears which.
        return respond(command.refused(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return respond(await settled(_commit_verified(ctx, command, guard, errors)))


def _commit_verified(
    ctx: Context, command: TxnOffsetCommit, guard: Guard, verdicts: Errors
) -> NowOrLater[CommitReply]:
    error = next(iter(verdicts.values()), ErrorCode.NONE)
    if error is not ErrorCode.NONE:
        return command.refused(error)
    return ctx.groups.submit(command.group_id, command, guard)


def _filled(
    response: TxnOffsetCommitResponse, pending: list[Partition], reply: CommitReply, version: int
) -> TxnOffsetCommitResponse:
    for answer, error in zip(pending, reply.errors, strict=True):
        error = _AS_COORDINATOR.get(error, error)
        if version < LOAD_ERROR_SINCE and error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE  # KAFKA-7296: older producers crash on it
        answer.error_code = error
    return response
