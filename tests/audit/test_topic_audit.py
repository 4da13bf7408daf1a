"""Topics of a real broker, audited."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

import semel
from semel.audit import Anomaly, TopicAudit, as_page, as_text
from semel.audit.zombies import produce_bytes
from semel.client import Admin, NewTopic, Producer
from semel.errors import SemelError, UsageError
from semel.testing import audit
from semel.wire.batches import BatchBuilder


@pytest.fixture
async def servers(tmp_path):
    # Without verification a transaction can be made to hang, as with clients before KIP-890.
    settings = {"transaction.partition.verification.enable": "false"}
    async with semel.Broker(data=tmp_path, port=0, settings=settings) as broker:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("orders", partitions=2)])
        yield broker.bootstrap_servers


async def audited(servers: str, *topics: str, **how):
    return await TopicAudit({"bootstrap.servers": servers}, topics or ("orders",), **how).run()


async def _write(servers: str, *values: bytes, commit: bool = True) -> None:
    async with Producer(servers, transactional_id="writer") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        for number, value in enumerate(values):
            await producer.send("orders", value, partition=number % 2)
        await producer.flush()
        if commit:
            await producer.commit_transaction()
        else:
            await producer.abort_transaction()


async def test_transactions_are_found_by_their_markers(servers):
    await _write(servers, b"a", b"b")
    await _write(servers, b"c", b"d", commit=False)
    report = await audited(servers)
    assert report.clean
    assert report.facts["committed in partitions"] == 2
    assert report.facts["aborted in partitions"] == 2
    assert report.facts["records"] == 4


async def test_repeated_values_are_found_among_committed_records_alone(servers):
    await _write(servers, b'{"id": 1}', b'{"id": 2}')
    await _write(servers, b'{"id": 2}', b'{"id": 3}', commit=False)
    assert (await audited(servers, unique="value.id")).clean
    await _write(servers, b'{"id": 2, "again": true}')
    report = await audited(servers, unique="value.id")
    assert report.findings.counts == {Anomaly.DUPLICATE_VALUE: 1}
    found = report.findings.of(Anomaly.DUPLICATE_VALUE)[0]
    assert found.where == "orders-1 offset 0"
    assert "orders-0 offset 4" in found.what


async def test_an_open_transaction_is_named_as_the_one_that_holds_readers_back(servers):
    async with Producer(servers, transactional_id="slow") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("orders", b"waits", partition=0)
        await producer.flush()
        report = await audited(servers)
        assert report.clean  # it may still end
        assert f"producer {producer.identity.producer_id}" in report.bars[0].held_by
        assert "held by producer" in as_text(report)
        await producer.abort_transaction()


async def test_a_transaction_that_no_coordinator_knows_is_hanging(servers):
    builder = BatchBuilder()
    builder.append(b"k", b"v", int(time.time() * 1000) - 3_600_000)
    async with Producer(servers, transactional_id="gone") as producer:
        target = semel.TopicPartition("orders", 0)
        batch = builder.build(
            producer_id=4_000, producer_epoch=0, base_sequence=0, transactional=True
        )
        assert await produce_bytes(producer, target, bytes(batch), at_most=11) == 0
    report = await audited(servers)
    assert report.findings.counts == {Anomaly.HANGING: 1}
    assert report.findings.of(Anomaly.HANGING)[0].where == "orders-0 offset 0"
    assert "Verdict: ANOMALIES: 1 hanging" in as_text(report)


async def test_a_topic_that_is_not_there_is_named(servers):
    with pytest.raises(SemelError, match="nowhere"):
        await audited(servers, "nowhere")


async def test_an_expression_that_is_not_known_is_refused_at_once(servers):
    with pytest.raises(UsageError, match=r"value\.FIELD"):
        await audited(servers, unique="valu")


async def test_the_blocking_form_for_tests_gives_the_same_report(servers):
    await _write(servers, b"a", b"b")
    report = await asyncio.to_thread(audit.read_topics, servers, "orders", unique="value")
    assert report.clean, report
    assert "no anomaly" in str(report)


async def test_a_report_is_a_page_that_runs_nothing(servers):
    await _write(servers, b"<script>alert(1)</script>", b"b")
    await _write(servers, b"<script>alert(1)</script>")
    report = await audited(servers, unique="value")
    page = as_page(report)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page
    assert json.loads(json.dumps(report.as_dict()))["clean"] is False
