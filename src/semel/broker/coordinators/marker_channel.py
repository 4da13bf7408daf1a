"""WriteTxnMarkers to another broker: the markers of many transactions in one request."""

from __future__ import annotations

import asyncio
import logging
from itertools import count

from semel.broker.coordinators.marker_sender import MarkerToSend, PendingCompleteTxn
from semel.core.transactions.transaction import TopicPartition
from semel.wire.errors import ErrorCode, ProtocolError
from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

log = logging.getLogger("semel.markers")

API_KEY, VERSION = 27, 2
TIMEOUT_SECONDS = 30.0

Marker = WriteTxnMarkersRequest.WritableTxnMarker
MarkerTopic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


class WireChannel:
    """A connection to one broker, opened when needed and again after it was lost."""

    def __init__(self, host: str, port: int, client_id: str) -> None:
        self._address = (host, port)
        self._client_id = client_id
        self._correlation_ids = count(1)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, markers: list[MarkerToSend]) -> list[tuple[MarkerToSend, ErrorCode]]:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                response = await self._exchange(request_for(markers))
            return answers_to(markers, response)
        except (OSError, EOFError, TimeoutError, ProtocolError) as problem:
            log.info("lost a broker", extra={"address": self._address, "problem": problem})
            await self.close()
            return [(marker, ErrorCode.NETWORK_EXCEPTION) for marker in markers]

    async def close(self) -> None:
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()

    async def _exchange(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        header = RequestHeader(API_KEY, VERSION, next(self._correlation_ids), self._client_id)
        writer.write(encode_request(header, request))
        await writer.drain()
        size = int.from_bytes(await reader.readexactly(4))
        frame = await reader.readexactly(size)
        correlation_id, response = decode_response(frame, API_KEY, VERSION)
        if correlation_id != header.correlation_id:
            raise ProtocolError(f"answer {correlation_id} to request {header.correlation_id}")
        assert isinstance(response, WriteTxnMarkersResponse)
        return response


def request_for(markers: list[MarkerToSend]) -> WriteTxnMarkersRequest:
    """One marker entry per transaction, its partitions grouped by topic."""
    by_transaction: dict[PendingCompleteTxn, list[TopicPartition]] = {}
    for pending, partition in markers:
        by_transaction.setdefault(pending, []).append(partition)
    request = WriteTxnMarkersRequest()
    for pending, partitions in by_transaction.items():
        producer_id, epoch, commit, coordinator_epoch, version = pending.marker
        topics: dict[str, MarkerTopic] = {}
        for topic, index in partitions:
            topics.setdefault(topic, MarkerTopic(name=topic)).partition_indexes.append(index)
        request.markers.append(
            Marker(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=commit,
                topics=list(topics.values()),
                coordinator_epoch=coordinator_epoch,
                transaction_version=version,
            )
        )
    return request


def answers_to(
    markers: list[MarkerToSend], response: WriteTxnMarkersResponse
) -> list[tuple[MarkerToSend, ErrorCode]]:
    """The error of each marker. One that was not answered is sent again."""
    errors = {
        (marker.producer_id, topic.name, partition.partition_index): partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
    answers = []
    for marker in markers:
        pending, (topic_name, index) = marker
        code = errors.get((pending.marker[0], topic_name, index))
        error = ErrorCode.NETWORK_EXCEPTION if code is None else ErrorCode.of(code)
        answers.append((marker, error))
    return answers
