"""DescribeTransactions (API key 65, version 0): the state of transactional ids (KIP-664).

Who may:   DESCRIBE on the TransactionalId; partitions of topics that it may not DESCRIBE are
           left out.
Answers:   from memory, once what it tells is durable. Of a transaction that is ending it names the
           partitions whose marker is not written yet, as Kafka does.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.replies import NowOrLater, when_all
from semel.core.transactions.commands import Describe, Found
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

API_KEY = 65
VERSIONS = ADVERTISED[API_KEY]

State = DescribeTransactionsResponse.TransactionState
TopicData = DescribeTransactionsResponse.TopicData


def handle(
    ctx: Context, request: DescribeTransactionsRequest, version: int
) -> NowOrLater[DescribeTransactionsResponse]:
    names = request.transactional_ids
    return when_all(
        [_find(ctx, name) for name in names],
        lambda found: DescribeTransactionsResponse(
            transaction_states=[
                _state(ctx, name, one) for name, one in zip(names, found, strict=True)
            ]
        ),
    )


def _find(ctx: Context, name: str) -> NowOrLater[Found]:
    if not ctx.may("DESCRIBE", "TRANSACTIONAL_ID", name):
        return Found(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not name:
        return Found(ErrorCode.INVALID_REQUEST)
    return ctx.transactions.submit(Describe(name))


def _state(ctx: Context, name: str, found: Found) -> State:
    if not found.transactions:
        return State(transactional_id=name, error_code=found.error)
    [txn] = found.transactions
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(ctx.transactions.involved(txn)):
        if ctx.may("DESCRIBE", "TOPIC", topic):
            topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return State(
        transactional_id=name,
        transaction_state=txn.state.kafka_name,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_start_time_ms=txn.started_at_ms,
        producer_id=txn.producer_id,
        producer_epoch=txn.epoch,
        topics=list(topics.values()),
    )
