"""AddPartitionsToTxn (API key 24, versions 0-5): put partitions into the open transaction.

Who may:   up to version 3 WRITE on the TransactionalId and on every Topic; from 4 on, sent between
           brokers, CLUSTER_ACTION on the Cluster.
Answers:   when the new state is durable. All of a transaction's partitions or none: one that cannot
           be added leaves the others OPERATION_NOT_ATTEMPTED.
Versions:  2 PRODUCER_FENCED, 3 flexible, 4 several transactions at once and "verify only".
Not here:  states and epochs (core/transactions/partitions).
"""

from __future__ import annotations

from typing import Any

from semel.broker.catalog import INTERNAL_TOPICS
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.broker.replies import fenced_for, when, when_all
from semel.core.transactions.commands import AddPartitions, VerifyPartitions
from semel.core.transactions.transaction import VERSION_1, VERSION_2, TopicPartition
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

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
Errors = dict[TopicPartition, ErrorCode]


def handle(ctx: Context, request: AddPartitionsToTxnRequest, version: int) -> Any:
    if version >= BETWEEN_BROKERS_SINCE:
        return _between_brokers(ctx, request, version)
    transaction = Transaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return when(
        _add(ctx, transaction, version),
        lambda errors: AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(transaction, errors),
            cause=_cause(ctx, transaction, errors),
        ),
    )


def _between_brokers(ctx: Context, request: AddPartitionsToTxnRequest, version: int) -> Any:
    if not ctx.may("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return when_all(
        [_add(ctx, transaction, version) for transaction in request.transactions],
        lambda all_errors: AddPartitionsToTxnResponse(
            results_by_transaction=[
                Result(
                    transactional_id=transaction.transactional_id,
                    topic_results=_results(transaction, errors),
                )
                for transaction, errors in zip(request.transactions, all_errors, strict=True)
            ]
        ),
    )


def _add(ctx: Context, transaction: Transaction, version: int) -> Any:
    """Errors by partition, or a future of them."""
    partitions = frozenset(
        (topic.name, index) for topic in transaction.topics for index in topic.partitions
    )
    name = transaction.transactional_id
    if not name:
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    by_client = version < BETWEEN_BROKERS_SINCE
    if by_client and not ctx.may("WRITE", "TRANSACTIONAL_ID", name):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    impossible = _impossible(ctx, partitions, by_client)
    if impossible:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | impossible
    holder = (name, transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        verified = ctx.transactions.submit(VerifyPartitions(*holder, partitions))
        return when(verified, lambda reply: dict(reply.by_partition))
    client_version = VERSION_1 if by_client else VERSION_2
    return when(
        ctx.transactions.submit(AddPartitions(*holder, partitions, client_version)),
        lambda reply: dict.fromkeys(partitions, fenced_for(reply.error, version, FENCED_SINCE)),
    )


def _cause(ctx: Context, transaction: Transaction, errors: Errors) -> str:
    error = next(iter(errors.values()), ErrorCode.NONE)
    why: str = ctx.transactions.why(error, transaction.producer_id, transaction.producer_epoch)
    return why


def _impossible(ctx: Context, partitions: frozenset[TopicPartition], by_client: bool) -> Errors:
    """Those that may not be written to or do not exist."""
    errors: Errors = {}
    for topic, index in partitions:
        if by_client and (topic in INTERNAL_TOPICS or not ctx.may("WRITE", "TOPIC", topic)):
            errors[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif ctx.partitions.find(topic, index) is None:
            errors[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


def _results(transaction: Transaction, errors: Errors) -> list[TopicResult]:
    return [
        TopicResult(
            name=topic.name,
            results_by_partition=[
                PartitionResult(
                    partition_index=index, partition_error_code=errors[topic.name, index]
                )
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]
