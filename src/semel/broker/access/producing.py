"""What Produce asks before all else, where a batch of the request is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.core.partition.admission import TRANSACTIONAL
from semel.store.interface import Buffer
from semel.wire.batches import header_at
from semel.wire.errors import ProtocolError
from semel.wire.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from semel.broker.context import Context


def is_denied_transactional(ctx: Context, request: ProduceRequest) -> bool:
    """Whether the request has a transactional batch and may not: that goes before all else, and
    counts batches that are refused for other reasons (KafkaApis.handleProduceRequest)."""
    name = request.transactional_id
    return any(
        _is_transactional(part.records)
        for data in request.topic_data
        for part in data.partition_data
    ) and (name is None or not ctx.may("WRITE", "TRANSACTIONAL_ID", name))


def _is_transactional(records: Buffer | None) -> bool:
    try:
        return bool(records and header_at(records).attributes & TRANSACTIONAL)
    except ProtocolError:
        return False
