"""AddOffsetsToTxn (API 25): adds a group's offsets to a transaction, ahead of TxnOffsetCommit.

Versions. 1: a throttled answer comes at once. 2: PRODUCER_FENCED is possible. 3: flexible. 4:
TRANSACTION_ABORTABLE is possible. Under KIP-890's protocol TxnOffsetCommit does this by itself.
"""

from __future__ import annotations

from semel.wire.schema import OWN_TAGS, Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, api_key=25, versions="0-4", flexible="3+"):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    cause: str = string(versions="3+", tag=OWN_TAGS, ignorable=True)  # why it was fenced
