"""The metrics page: what Prometheus would read after a few transactions."""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from semel.broker.access.throttling import MeteredRoute
from semel.broker.metrics.requests import error_finder
from semel.client import Admin, Consumer, Producer, TopicPartition


async def fetch(broker, request=b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    return head.splitlines()[0], dict(
        line.rsplit(" ", 1) for line in body.splitlines() if line.startswith(("semel_", "process_"))
    )


@pytest.fixture
async def measured(start_broker):
    return await start_broker(metrics_port=0)


async def test_a_fresh_broker_has_a_page(measured):
    status, values = await fetch(measured)
    assert status == "HTTP/1.1 200 OK"
    assert values["semel_connections"] == "0.0"
    assert not [name for name in values if name.startswith("semel_transactions")]


async def test_transactions_are_counted(measured, new_peer):
    peer = await new_peer(measured)
    await peer.create_topic()
    await peer.init()
    for commit in (True, True, False):
        await peer.add()
        await peer.produce()
        await peer.end(commit)
    assert (await peer.end(True)).error_code != 0
    await peer.add()
    await peer.produce()
    _, values = await fetch(measured)
    assert values['semel_transactions_total{outcome="commit"}'] == "2.0"
    assert values['semel_transactions_total{outcome="abort"}'] == "1.0"
    assert values['semel_transactions_failures_total{error="INVALID_TXN_STATE"}'] == "1.0"
    assert values['semel_transactions_end_seconds_bucket{le="+Inf"}'] == "3.0"
    assert values['semel_transactions_ids{state="Ongoing"}'] == "1.0"
    assert values['semel_last_stable_offset_lag{partition="0",topic="t"}'] == "1.0"
    assert float(values["semel_transactions_oldest_open_seconds"]) >= 0


async def test_forced_ends_are_counted_by_cause(measured, new_peer):
    peer = await new_peer(measured)
    await peer.create_topic()
    await peer.init()
    await peer.add()
    await (await new_peer(measured)).init()
    _, values = await fetch(measured)
    assert float(values['semel_transactions_forced_total{cause="taken over"}']) >= 1


async def test_other_methods_are_refused(measured):
    status, _ = await fetch(measured, b"POST / HTTP/1.1\r\n\r\n")
    assert status.endswith("405 Method Not Allowed")


async def test_without_a_port_there_is_no_page(broker):
    assert "metrics" not in vars(broker)


async def test_requests_are_counted_by_api_with_their_errors(measured, new_peer):
    peer = await new_peer(measured)
    await peer.create_topic()
    await peer.init()
    await peer.add()
    await peer.produce()
    assert (await peer.end(True)).error_code == 0
    assert (await peer.end(False)).error_code != 0
    _, values = await fetch(measured)
    assert values['semel_request_seconds_count{api="EndTxn"}'] == "2.0"
    assert values['semel_request_seconds_bucket{api="EndTxn",le="+Inf"}'] == "2.0"
    assert values['semel_request_errors_total{api="EndTxn",error="INVALID_TXN_STATE"}'] == "1.0"
    assert values['semel_request_seconds_count{api="Produce"}'] == "1.0"
    assert float(values['semel_topic_received_bytes_total{topic="t"}']) > 61
    assert float(values['semel_topic_log_bytes{topic="t"}']) > 61
    assert values["semel_connections"] == "1.0"


async def test_bytes_that_go_out_are_counted_by_topic_also_for_fetches_that_wait(measured):
    servers = measured.bootstrap_servers
    async with Producer(servers) as producer, Consumer(servers) as consumer:
        await producer.send_and_wait("t", b"first")
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek_to_beginning(TopicPartition("t", 0))
        while not await consumer.poll(100):
            pass
        waiting = asyncio.create_task(consumer.poll(10_000))
        await producer.send_and_wait("t", b"second")
        while not await waiting:
            waiting = asyncio.create_task(consumer.poll(10_000))
        _, values = await fetch(measured)
    received = float(values['semel_topic_received_bytes_total{topic="t"}'])
    assert float(values['semel_topic_sent_bytes_total{topic="t"}']) == received
    assert float(values['semel_request_seconds_count{api="Fetch"}']) >= 2


async def test_every_error_code_of_an_answer_is_found():
    from semel.wire.messages.produce import ProduceResponse

    code = 7
    partition = ProduceResponse.PartitionProduceResponse(index=0, error_code=code)
    topic = ProduceResponse.TopicProduceResponse(name="t", partition_responses=[partition] * 2)
    found: Counter[int] = Counter()
    error_finder(ProduceResponse)(ProduceResponse(responses=[topic]), found)
    assert found == {code: 2}


async def test_health_is_told(measured):
    assert (await fetch(measured, b"GET /health/live HTTP/1.1\r\n\r\n"))[0].endswith("200 OK")
    assert (await fetch(measured, b"GET /health/ready HTTP/1.1\r\n\r\n"))[0].endswith("200 OK")
    measured._stopped = True  # as while it stops
    status, _ = await fetch(measured, b"GET /health/ready?now HTTP/1.1\r\n\r\n")
    measured._stopped = False
    assert status.endswith("503 Service Unavailable")


async def test_topics_beyond_the_bound_are_told_together(measured, monkeypatch):
    from semel.broker.metrics import requests

    monkeypatch.setattr(requests, "MOST_TOPICS", 2)
    async with Producer(measured.bootstrap_servers) as producer:
        for number in range(4):
            await producer.send_and_wait(f"t{number}", b"x")
    _, values = await fetch(measured)
    told = {name for name in values if name.startswith("semel_topic_received_bytes")}
    assert len(told) == 3
    assert 'semel_topic_received_bytes_total{topic="(others)"}' in told


OPERATIONS = Path(__file__).parents[3] / "docs" / "operations"


def test_the_dashboard_and_the_alerts_name_metrics_that_exist():
    guide = (OPERATIONS.parent / "guides" / "broker.md").read_text()
    listed = set(re.findall(r"`(semel_\w+)", guide))
    families = {name.removesuffix("_total") for name in listed}
    for file in ("grafana.json", "alerts.yaml"):
        text = (OPERATIONS / file).read_text()
        used = set(re.findall(r"\bsemel_[a-z_]+", text))
        assert used, file
        plain = {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in used - listed}
        assert not plain - families, file
    dashboard = json.loads((OPERATIONS / "grafana.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


async def test_quotas_hold_where_metrics_are_on_as_well(tmp_path, start_broker):
    """They are set before the page is there: what counts requests must not take their place."""
    first = await start_broker(tmp_path)
    async with Admin(first.bootstrap_servers) as admin:
        await admin.alter_quotas({"user": None}, {"producer_byte_rate": 1.0})
    await first.stop()
    second = await start_broker(tmp_path, metrics_port=0)
    async with Producer(second.bootstrap_servers) as producer:
        await producer.send_and_wait("t", bytes(1_000))
    assert second._dispatcher.routes
    for route in second._dispatcher.routes.values():
        assert isinstance(route, MeteredRoute)
    _, values = await fetch(second)
    assert float(values['semel_request_seconds_count{api="Produce"}']) >= 1
