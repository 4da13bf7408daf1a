"""From frames to handlers: versions, malformed bytes, failing handlers, order of answers."""

import asyncio
import struct
from importlib import import_module

import pytest

from semel.broker import api
from semel.broker.failures import ApiError
from semel.broker.settings.settings import Settings
from semel.wire.errors import ErrorCode
from semel.wire.frames import RequestHeader, decode_response, encode_request
from semel.wire.messages import ADVERTISED
from semel.wire.messages.api_versions import ApiVersionsRequest
from semel.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.produce import ProduceRequest

CLUSTER = DescribeClusterRequest()


@pytest.fixture
def handle_with(broker):
    """Puts a handler of the test's own in place of DescribeCluster's (or another's)."""

    def put(handle, key=60, version=0):
        broker._dispatcher.routes[key << 16 | version].handle = handle

    return put


@pytest.mark.parametrize("key", sorted(api.modules()))
def test_a_module_has_the_key_and_versions_of_its_name(key):
    module = import_module(f"semel.broker.api.{api.modules()[key]}")
    assert key == module.API_KEY
    assert ADVERTISED.get(key, module.VERSIONS) == module.VERSIONS
    assert callable(module.handle)


async def test_api_versions_tells_exactly_what_is_answered(ask):
    for version in range(5):
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1.0")
        response = await ask(request, version)
        assert response.error_code == 0
        told = {
            one.api_key: range(one.min_version, one.max_version + 1) for one in response.api_keys
        }
        assert told == {key: ADVERTISED[key] for key in api.modules() if key in ADVERTISED}


async def test_api_versions_tells_the_finalized_features(ask):
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1.0")
    response = await ask(request, 4)
    finalized = {one.name: one.max_version_level for one in response.finalized_features}
    assert finalized["transaction.version"] == 2
    supported = {
        one.name: (one.min_version, one.max_version) for one in response.supported_features
    }
    assert supported["transaction.version"] == (0, 2)
    assert response.finalized_features_epoch > 0
    # A least version of 0 is what clients of version 3 cannot read.
    response = await ask(request, 3)
    assert [one.name for one in response.supported_features] == ["metadata.version"]


async def test_an_unknown_version_of_api_versions_is_answered_with_35_in_the_oldest_form(ask):
    ask.writer.write(struct.pack(">ihhih", 10, 18, 99, 42, -1))
    correlation_id, response = decode_response(await ask.receive_frame(), 18, 0)
    assert correlation_id == 42
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    (own,) = response.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 4)
    assert (await ask(CLUSTER, 0)).error_code == 0  # and the connection lives on


@pytest.mark.parametrize("name", ["", "-x", "a b", "ä"])
async def test_a_client_that_names_itself_badly_is_refused(ask, name):
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert (await ask(request, 3)).error_code == ErrorCode.INVALID_REQUEST


async def test_version_6_of_init_producer_id_is_told_only_where_two_phase_commit_is_on():
    assert api.versions(Settings())[22] == range(0, 6)
    on = Settings({"transaction.two.phase.commit.enable": "true"})
    assert api.versions(on)[22] == range(0, 7)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (struct.pack(">hhih", 60, 77, 1, -1), "unsupported request: DescribeCluster v77"),
        (struct.pack(">hhih", 4, 0, 1, -1), "unsupported request: API 4 v0"),
        # As Kafka on a listener for clients: each would cost a write to the device.
        (struct.pack(">hhih", 67, 0, 1, -1), "unsupported request: AllocateProducerIds v0"),
        (struct.pack(">hhih", 0, 2, 1, -1), "malformed request: ProduceRequest has no version 2"),
        (struct.pack(">hhih", 3, 1, 1, -1) + b"\0", "malformed request: MetadataRequest v1"),
        (struct.pack(">hhih", 3, 1, 1, 500), "malformed request: the bytes end within the client"),
        (b"\0", "malformed request: unpack_from requires"),
    ],
)
async def test_what_is_no_request_closes_the_connection_with_one_line(ask, caplog, frame, reason):
    ask.writer.write(len(frame).to_bytes(4, "big") + frame)
    assert await ask.reader.read() == b""
    (line,) = [record for record in caplog.records if record.name == "semel.net"]
    assert line.reason.startswith(reason)


async def test_a_failing_handler_is_answered_in_its_responses_shape_and_logged(
    ask, handle_with, caplog
):
    def handle(ctx, request, version):
        raise KeyError("a bug")

    handle_with(handle)
    assert (await ask(CLUSTER, 0)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    (line,) = [record for record in caplog.records if record.name == "semel.dispatch"]
    assert (line.api, line.version) == ("DescribeCluster", 0)
    assert line.exc_info[0] is KeyError
    assert (await ask(MetadataRequest(topics=[]), 1)).topics == []  # the connection lives on


@pytest.mark.parametrize("kind", ["raises", "future", "coroutine"])
async def test_an_api_error_is_answered_as_it_is_and_not_logged(ask, handle_with, caplog, kind):
    problem = ApiError(ErrorCode.NOT_CONTROLLER, "ask another")

    def handle(ctx, request, version):
        if kind == "raises":
            raise problem
        future = asyncio.get_running_loop().create_future()
        future.set_exception(problem)
        return future

    async def handle_slowly(ctx, request, version):
        raise problem

    handle_with(handle_slowly if kind == "coroutine" else handle)
    response = await ask(CLUSTER, 0)
    assert (response.error_code, response.error_message) == (41, "ask another")
    assert not caplog.records


async def test_a_failing_disk_is_a_storage_error(ask, handle_with):
    def handle(ctx, request, version):
        raise OSError(28, "No space left on device")

    handle_with(handle)
    response = await ask(CLUSTER, 0)
    assert response.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert response.error_message == "No space left on device"


async def test_an_answer_that_cannot_be_encoded_is_a_failure_too(ask, handle_with):
    handle_with(lambda ctx, request, version: DescribeClusterResponse(controller_id="one"))
    assert (await ask(CLUSTER, 0)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_a_failed_produce_without_acks_closes_the_connection(ask, handle_with, caplog):
    def handle(ctx, request, version):
        raise RuntimeError

    handle_with(handle, key=0, version=9)
    ask.send(ProduceRequest(acks=0), 9)
    assert await ask.reader.read() == b""
    assert caplog.records[-1].reason == "a Produce with acks 0 failed"


async def test_requests_of_one_kind_that_came_in_one_go_are_handled_together(broker, ask):
    together = []

    def handle_many(ctx, requests, version):
        together.append(len(requests))
        return [DescribeClusterResponse(cluster_id=str(n)) for n in range(len(requests))]

    broker._dispatcher.routes[60 << 16].handle_many = handle_many
    for request, version in [(CLUSTER, 0)] * 2 + [(MetadataRequest(topics=[]), 1), (CLUSTER, 0)]:
        ask.send(request, version)
    assert [(await ask.receive(60, 0)).cluster_id for _ in range(2)] == ["0", "1"]
    assert (await ask.receive(3, 1)).topics == []
    assert (await ask.receive(60, 0)).cluster_id == "0"
    assert sum(together) == 3


async def test_requests_handled_together_fail_together(broker, ask):
    def handle_many(ctx, requests, version):
        raise ApiError(ErrorCode.NOT_CONTROLLER, "ask another")

    broker._dispatcher.routes[60 << 16].handle_many = handle_many
    ask.send(CLUSTER, 0)
    ask.send(CLUSTER, 0)
    errors = [(await ask.receive(60, 0)).error_code for _ in range(2)]
    assert errors == [ErrorCode.NOT_CONTROLLER] * 2


async def test_futures_are_started_together_and_answered_in_order(ask, handle_with):
    futures = []
    both = asyncio.Event()

    def handle(ctx, request, version):
        futures.append(asyncio.get_running_loop().create_future())
        if len(futures) == 2:
            both.set()
        return futures[-1]

    handle_with(handle)
    ask.send(CLUSTER, 0)
    ask.send(CLUSTER, 0)
    await both.wait()
    futures[1].set_result(DescribeClusterResponse(cluster_id="second"))
    futures[0].set_result(DescribeClusterResponse(cluster_id="first"))
    answers = [(await ask.receive(60, 0)).cluster_id for _ in range(2)]
    assert answers == ["first", "second"]


async def test_a_coroutine_holds_back_the_requests_after_it(ask, handle_with, until):
    going_on = asyncio.Event()
    started = []

    async def handle_slowly(ctx, request, version):
        started.append("slow")
        await going_on.wait()
        started.append("slow is done")
        return DescribeClusterResponse(cluster_id="slow")

    def handle_metadata(ctx, request, version):
        started.append("quick")
        return original(ctx, request, version)

    original = api.handler(3)
    handle_with(handle_slowly)
    handle_with(handle_metadata, key=3, version=1)
    ask.send(CLUSTER, 0)
    ask.send(MetadataRequest(topics=[]), 1)
    await until(lambda: started)
    going_on.set()
    assert (await ask.receive(60, 0)).cluster_id == "slow"
    assert (await ask.receive(3, 1)).topics == []
    assert started == ["slow", "slow is done", "quick"]


async def test_an_answer_after_the_client_left_harms_nobody(
    broker, connect, handle_with, caplog, until
):
    future = asyncio.get_running_loop().create_future()
    started = asyncio.Event()

    def handle(ctx, request, version):
        started.set()
        return future

    handle_with(handle)
    leaving, staying = await connect(broker), await connect(broker)
    leaving.send(CLUSTER, 0)
    await started.wait()
    leaving.writer.transport.abort()
    await until(lambda: len(broker.listeners.first.net.connections) == 1)
    future.set_exception(RuntimeError("too late to matter"))
    assert (await staying(MetadataRequest(topics=[]), 1)).topics == []
    assert not caplog.records


async def test_handlers_know_who_asks(ask, handle_with):
    seen = []

    def handle(ctx, request, version):
        connection = ctx.connection
        seen.append((ctx.client_id, connection.listener, connection.host, str(ctx.principal)))
        return DescribeClusterResponse()

    handle_with(handle)
    await ask(CLUSTER, 0)
    assert seen == [("tester", "PLAINTEXT", "127.0.0.1", "User:ANONYMOUS")]


async def test_each_request_is_told_under_its_own_client_name(ask, handle_with):
    def handle(ctx, request, version):
        return DescribeClusterResponse(cluster_id=repr(ctx.client_id))

    handle_with(handle)
    for name in ("one", "one", "other", "", None, "on"):
        ask.writer.write(encode_request(RequestHeader(60, 0, 1, name), CLUSTER))
        assert (await ask.receive(60, 0)).cluster_id == repr(name)
