"""The records of `__transaction_state`: what a transaction coordinator knows of an id.

The key's bytes begin with its type (API_KEY, two bytes), the value's with its version (two
bytes); neither is part of these messages. Value version 0 is written under transaction version 0;
1 is flexible and carries, tagged, the previous and next producer id, the next epoch and the
client's transaction version (KIP-890), so that an older Kafka can read past them.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, int8, int16, int32, int64, string


class TransactionLogKey(Message, api_key=0, versions="0"):
    transactional_id: str = string()


class TransactionLogValue(Message, api_key=0, versions="0-1", flexible="1+"):
    producer_id: int = int64()
    previous_producer_id: int = int64(-1, versions="1+", tag=0)
    next_producer_id: int = int64(-1, versions="1+", tag=1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16(-1, versions="1+", tag=3)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = array(
        "PartitionsSchema", nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(versions="1+", tag=2)

    class PartitionsSchema(Struct):
        topic: str = string()
        partition_ids: list[int] = array(int32)
