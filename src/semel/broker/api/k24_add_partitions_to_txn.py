"""AddPartitionsToTxn (API key 24, versions 0-5): put partitions into the open transaction.

Who may:   up to version 3 WRITE on the TransactionalId and on every Topic; from 4 on, sent between
           brokers, CLUSTER_ACTION on the Cluster.
Answers:   when the new state is durable. All of a transaction's partitions or none: one that cannot
           be added leaves the others OPERATION_NOT_ATTEMPTED.
Versions:  2 PRODUCER_FENCED, 3 flexible, 4 several transactions at once and "verify only".
Not here:  states and epochs (core/transactions/partitions).
"""

from __future__ import annotations

from collections.abc import Mapping

from semel.broker.catalog.internal_topics import INTERNAL_TOPICS
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.coordinators.errors import fenced_for
from semel.broker.replies import NowOrLater, when, when_all
from semel.core.transactions.commands import AddPartitions, PartitionErrors, Reply, VerifyPartitions
from semel.core.transactions.transaction import TV_0, TV_2, TopicPartition
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)

API_KEY = 24
VERSIONS = ADVERTISED[API_KEY]

BETWEEN_BROKERS_SINCE = 4
FENCED_SINCE = 2

Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
Holder = tuple[str, int, int]
Outcome = ErrorCode | Mapping[TopicPartition, ErrorCode]
"""The error of all partitions, or of each of them."""
Answer = Reply | PartitionErrors
"""Of the coordinator, or as it would give it if it had to be asked."""


def handle(
    ctx: Context, request: AddPartitionsToTxnRequest, version: int
) -> NowOrLater[AddPartitionsToTxnResponse]:
    if version >= BETWEEN_BROKERS_SINCE:
        return _between_brokers(ctx, request, version)
    topics = request.v3_and_below_topics
    holder = (
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
    )

    def respond(reply: Answer) -> AddPartitionsToTxnResponse:
        outcome = _outcome(reply, version)
        response = AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(topics, outcome)
        )
        if outcome and isinstance(outcome, ErrorCode):  # nobody is fenced from some partitions
            response.cause = ctx.transactions.why(outcome, *holder[1:])
        return response

    return when(_add(ctx, holder, topics, version), respond)


def _between_brokers(
    ctx: Context, request: AddPartitionsToTxnRequest, version: int
) -> NowOrLater[AddPartitionsToTxnResponse]:
    if not ctx.may("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = [_added(ctx, transaction, version) for transaction in request.transactions]
    return when_all(
        results, lambda results: AddPartitionsToTxnResponse(results_by_transaction=results)
    )


def _added(
    ctx: Context, asked: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction, version: int
) -> NowOrLater[Result]:
    holder = (asked.transactional_id, asked.producer_id, asked.producer_epoch)
    return when(
        _add(ctx, holder, asked.topics, version, asked.verify_only),
        lambda reply: Result(
            transactional_id=asked.transactional_id,
            topic_results=_results(asked.topics, _outcome(reply, version)),
        ),
    )


def _add(
    ctx: Context, holder: Holder, topics: list[Topic], version: int, verify_only: bool = False
) -> NowOrLater[Answer]:
    by_client = version < BETWEEN_BROKERS_SINCE
    if by_client and not ctx.may("WRITE", "TRANSACTIONAL_ID", holder[0]):
        return Reply(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    partitions = frozenset([(topic.name, index) for topic in topics for index in topic.partitions])
    impossible = _impossible(ctx, topics, by_client)
    if impossible:
        others = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        return PartitionErrors(by_partition=others | impossible)
    if not holder[0]:
        return Reply(ErrorCode.INVALID_REQUEST)
    if verify_only:
        return ctx.transactions.submit(VerifyPartitions(*holder, partitions))
    client_version = TV_0 if by_client else TV_2
    return ctx.transactions.submit(AddPartitions(*holder, partitions, client_version))


def _outcome(reply: Answer, version: int) -> Outcome:
    if isinstance(reply, Reply):
        return fenced_for(reply.error, version, FENCED_SINCE)
    return reply.by_partition


def _impossible(
    ctx: Context, topics: list[Topic], by_client: bool
) -> dict[TopicPartition, ErrorCode]:
    """Those that may not be written to or do not exist."""
    errors: dict[TopicPartition, ErrorCode] = {}
    for topic in topics:
        name = topic.name
        denied = by_client and (name in INTERNAL_TOPICS or not ctx.may("WRITE", "TOPIC", name))
        count = len(ctx.partitions.of(name))
        for index in topic.partitions:
            if denied:
                errors[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not 0 <= index < count:
                errors[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


def _results(topics: list[Topic], outcome: Outcome) -> list[TopicResult]:
    results = []
    for topic in topics:
        name = topic.name
        by_partition = []
        for index in topic.partitions:
            error = outcome if isinstance(outcome, ErrorCode) else outcome[name, index]
            by_partition.append(PartitionResult(partition_index=index, partition_error_code=error))
        results.append(TopicResult(name=name, results_by_partition=by_partition))
    return results
