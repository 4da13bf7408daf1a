"""EndTxn (API 26): commits or aborts a transaction.

Versions. 1: a throttled answer comes at once. 2: PRODUCER_FENCED is possible. 3: flexible. 4:
TRANSACTION_ABORTABLE is possible. 5: every transaction gets an epoch of its own, and the answer
says producer id and epoch of the next (KIP-890).
"""

from __future__ import annotations

from semel.wire.schema import OWN_TAGS, Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(-1, versions="5+", ignorable=True)
    producer_epoch: int = int16(-1, versions="5+", ignorable=True)
    cause: str = string(versions="3+", tag=OWN_TAGS, ignorable=True)  # why it was fenced
