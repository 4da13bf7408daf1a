"""ListTransactions (API 66): a coordinator's transactions, filtered (KIP-664).

Versions. 0, flexible. 1: only those that run longer than a duration. 2: only ids that match a
regular expression.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Message, api_key=66, versions="0-2", flexible="0+"):
    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(-1, versions="1+")
    transactional_id_pattern: str | None = string(None, versions="2+", nullable="0+")


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[ListTransactionsResponse.TransactionState] = array("TransactionState")

    class TransactionState(Struct):
        transactional_id: str = string()
        producer_id: int = int64()
        transaction_state: str = string()
