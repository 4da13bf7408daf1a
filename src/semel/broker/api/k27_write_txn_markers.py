"""WriteTxnMarkers (API key 27, versions 1-2): end transactions in the partitions led here.

Who may:   ALTER or CLUSTER_ACTION on the Cluster: other brokers, and operators who abort a hanging
           transaction (KIP-664).
Answers:   when the markers are durable, one error per partition.
Versions:  1 flexible, 2 carries the transaction version.
Not here:  which epochs a partition accepts (core/partition/state); our own coordinators do not come
           this way (broker/coordinators/marker_sender).
"""

from __future__ import annotations

from collections.abc import Iterator

from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError, storage_code
from semel.broker.replies import NowOrLater, when_durable
from semel.core.partition.admission import Refusal
from semel.store.interface import Ticket
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

API_KEY = 27
VERSIONS = ADVERTISED[API_KEY]

BY_AN_OPERATOR = "aborted by an operator ({who})"

Marker = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
PartitionResult = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


def handle(
    ctx: Context, request: WriteTxnMarkersRequest, version: int
) -> NowOrLater[WriteTxnMarkersResponse]:
    if not (
        ctx.may("ALTER", "CLUSTER", CLUSTER_NAME)
        or ctx.may("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
    ):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response = WriteTxnMarkersResponse()
    waiting = [
        (result, ticket)
        for marker in request.markers
        for result, ticket in _write(ctx, marker, response)
        if not ticket.durable
    ]
    if not waiting:
        return response

    def respond() -> WriteTxnMarkersResponse:
        for result, ticket in waiting:
            if ticket.error is not None:
                result.error_code = storage_code(ticket.error)
        return response

    return when_durable(ctx.broker.loop, [ticket for _, ticket in waiting], respond)


def _write(
    ctx: Context, marker: Marker, response: WriteTxnMarkersResponse
) -> Iterator[tuple[PartitionResult, Ticket]]:
    result = Result(producer_id=marker.producer_id)
    response.markers.append(result)
    fields = (
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )
    refused = _without_producer(marker)
    for topic in marker.topics:
        topic_result = TopicResult(name=topic.name)
        result.topics.append(topic_result)
        for index in topic.partition_indexes:
            written = refused or ctx.transactions.markers.append_here(topic.name, index, fields)
            error = written.error if isinstance(written, Refusal) else ErrorCode.NONE
            partition_result = PartitionResult(partition_index=index, error_code=error)
            topic_result.partitions.append(partition_result)
            if not isinstance(written, Refusal):
                _remember(ctx, marker)
                yield partition_result, written


def _without_producer(marker: Marker) -> Refusal | None:
    """A marker of no producer (Kafka: UNKNOWN_SERVER_ERROR): no batch may be written so."""
    if marker.producer_id < 0:
        return Refusal(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"There is no producer id {marker.producer_id}."
        )
    if marker.producer_epoch < 0:
        return Refusal(
            ErrorCode.INVALID_PRODUCER_EPOCH, f"There is no epoch {marker.producer_epoch}."
        )
    return None


def _remember(ctx: Context, marker: Marker) -> None:
    if not marker.transaction_result:
        who = f"client {ctx.client_id} from {ctx.connection.peer_host}"
        ctx.transactions.timeline.explain(
            marker.producer_id, marker.producer_epoch, BY_AN_OPERATOR.format(who=who)
        )
