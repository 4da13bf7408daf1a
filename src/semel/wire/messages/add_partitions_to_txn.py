"""AddPartitionsToTxn (API 24): adds partitions to an ongoing transaction, or begins one with them.

Versions. 0-3 are for clients, later ones for brokers. 1: a throttled answer comes at once. 2:
PRODUCER_FENCED is possible. 3: flexible. 4: many transactions at once, and `verify_only`, by
which a leader asks whether a partition belongs to the transaction. 5: TRANSACTION_ABORTABLE is
possible.
"""

from __future__ import annotations

from semel.wire.schema import OWN_TAGS, Message, Struct, array, boolean, int16, int32, int64, string


class AddPartitionsToTxnRequest(Message, api_key=24, versions="0-5", flexible="3+"):
    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = array(
        "AddPartitionsToTxnTransaction", versions="4+"
    )
    v3_and_below_transactional_id: str = string(versions="0-3")
    v3_and_below_producer_id: int = int64(versions="0-3")
    v3_and_below_producer_epoch: int = int16(versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = array(
        "AddPartitionsToTxnTopic", versions="0-3"
    )

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = string()
        producer_id: int = int64()
        producer_epoch: int = int16()
        verify_only: bool = boolean()
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = array(
            "AddPartitionsToTxnTopic"
        )

    class AddPartitionsToTxnTopic(Struct):
        name: str = string()
        partitions: list[int] = array(int32)


class AddPartitionsToTxnResponse(Message, api_key=24, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = array(
        "AddPartitionsToTxnResult", versions="4+"
    )
    results_by_topic_v3_and_below: list[
        AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    ] = array("AddPartitionsToTxnTopicResult", versions="0-3")
    cause: str = string(versions="3+", tag=OWN_TAGS, ignorable=True)  # why it was fenced

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = string()
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = array(
            "AddPartitionsToTxnTopicResult"
        )

    class AddPartitionsToTxnTopicResult(Struct):
        name: str = string()
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = (
            array("AddPartitionsToTxnPartitionResult")
        )

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int = int32()
        partition_error_code: int = int16()
