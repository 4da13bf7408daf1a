"""Spark's own Kafka client beside brokers that cannot be worked with. Needs no Spark."""

import socket
import threading
from collections.abc import Iterator

import pytest

from semel.errors import FatalError, RefusedError
from semel.spark.kafka.client import BlockingCluster
from semel.spark.kafka.settings import SparkSettings
from semel.wire.frames import decode_request, encode_response
from semel.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from semel.wire.messages.end_txn import EndTxnRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.write_txn_markers import WriteTxnMarkersRequest

Told = ApiVersionsResponse.ApiVersion


def serve(listening: socket.socket, told: list[Told], otherwise: bytes) -> None:
    """One connection: says what it speaks, and answers everything else with the same bytes."""
    connection, _ = listening.accept()
    with connection, connection.makefile("rb") as received:
        while length := received.read(4):
            header, request = decode_request(received.read(int.from_bytes(length, "big")))
            if isinstance(request, ApiVersionsRequest):
                response = ApiVersionsResponse(api_keys=told)
                connection.sendall(
                    encode_response(header.correlation_id, response, header.api_version)
                )
            else:
                answer = header.correlation_id.to_bytes(4, "big") + otherwise
                connection.sendall(len(answer).to_bytes(4, "big") + answer)


@pytest.fixture
def cluster() -> Iterator[BlockingCluster]:
    told = [
        Told(api_key=18, min_version=0, max_version=3),
        Told(api_key=3, min_version=0, max_version=12),
        Told(api_key=26, min_version=99, max_version=99),
    ]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = threading.Thread(target=serve, args=(listening, told, b"\xff" * 9))
        peer.start()
        made = BlockingCluster(SparkSettings.of(f"127.0.0.1:{listening.getsockname()[1]}"))
        yield made
        made.close()
        peer.join()


def test_a_broker_that_lacks_a_request_is_refused_by_its_name(cluster: BlockingCluster) -> None:
    with pytest.raises(RefusedError, match="does not know WriteTxnMarkersRequest"):
        cluster.any().call(WriteTxnMarkersRequest())


def test_a_broker_that_speaks_only_other_versions_is_refused_with_both(
    cluster: BlockingCluster,
) -> None:
    with pytest.raises(RefusedError, match="EndTxnRequest from version 99 on"):
        cluster.any().call(EndTxnRequest())


def test_an_answer_that_cannot_be_read_is_one_of_our_errors(cluster: BlockingCluster) -> None:
    with pytest.raises(FatalError, match="answer to MetadataRequest cannot be read"):
        cluster.any().call(MetadataRequest())
