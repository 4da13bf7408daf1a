"""The metrics page: what Prometheus would read after a few transactions."""

import asyncio

import pytest


async def fetch(broker, request=b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    return head.splitlines()[0], dict(
        line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#")
    )


@pytest.fixture
async def measured(start_broker):
    return await start_broker(metrics_port=0)


async def test_a_fresh_broker_has_a_page(measured):
    status, values = await fetch(measured)
    assert status == "HTTP/1.1 200 OK"
    assert values == {}


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
