"""DescribeTransactions (API 65): what a coordinator knows about transactional ids (KIP-664).

Versions. 0, flexible.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Message, api_key=65, versions="0", flexible="0+"):
    transactional_ids: list[str] = array(string)


class DescribeTransactionsResponse(Message, api_key=65, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    transaction_states: list[DescribeTransactionsResponse.TransactionState] = array(
        "TransactionState"
    )

    class TransactionState(Struct):
        error_code: int = int16()
        transactional_id: str = string()
        transaction_state: str = string()
        transaction_timeout_ms: int = int32()
        transaction_start_time_ms: int = int64()
        producer_id: int = int64()
        producer_epoch: int = int16()
        topics: list[DescribeTransactionsResponse.TopicData] = array("TopicData")

    class TopicData(Struct):
        topic: str = string()
        partitions: list[int] = array(int32)
