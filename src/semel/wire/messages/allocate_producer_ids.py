"""AllocateProducerIds (API 67): a broker gets a block of producer ids from the controller.

Versions. 0, flexible. Between brokers and controllers only, hence not advertised to clients.
"""

from __future__ import annotations

from semel.wire.schema import Message, int16, int32, int64


class AllocateProducerIdsRequest(Message, api_key=67, versions="0", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
