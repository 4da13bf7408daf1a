"""InitProducerId (API 22): a producer gets its id and epoch, and fences its predecessors.

Versions. 1: a throttled answer comes at once. 2: flexible. 3: the id and epoch that the producer
has, to go on after an error (KIP-360). 4: PRODUCER_FENCED is possible, where older versions get
INVALID_PRODUCER_EPOCH. 5: TRANSACTION_ABORTABLE is possible. 6: two-phase commit and prepared
transactions (KIP-939), not stable in Kafka 4.3.1 and not advertised by it.
"""

from __future__ import annotations

from semel.wire.schema import OWN_TAGS, Message, boolean, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=22, versions="0-6", flexible="2+"):
    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(-1, versions="3+")
    producer_epoch: int = int16(-1, versions="3+")
    enable2_pc: bool = boolean(versions="6+")
    keep_prepared_txn: bool = boolean(versions="6+")


class InitProducerIdResponse(Message, api_key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(-1, versions="6+")
    ongoing_txn_producer_epoch: int = int16(-1, versions="6+")
    cause: str = string(versions="2+", tag=OWN_TAGS, ignorable=True)  # why it was fenced
