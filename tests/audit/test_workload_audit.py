"""The whole workload against a real broker, and a broker that lies."""

from __future__ import annotations

import asyncio

import pytest

import semel
from semel.audit import Anomaly, WorkloadAudit, WorkloadPlan
from semel.audit.processes import WorkerProcess
from semel.client import Admin
from semel.errors import UsageError

HARD = WorkloadPlan(seconds=6, seed=3, writers=2, kills_per_minute=60, pauses_per_minute=20)


async def test_a_broker_under_kills_is_found_clean_and_left_tidy(tmp_path):
    async with semel.Broker(data=tmp_path, port=0) as broker:
        audit = WorkloadAudit({"bootstrap.servers": broker.bootstrap_servers}, HARD)
        report = await audit.run()
        assert report.clean, report.as_dict()
        assert report.complete
        assert report.facts["kills"] > 0
        assert report.facts["transactions committed"] > 0
        assert set(report.facts["zombies refused"]) == {
            *("sends", "commits", "timeout", "late batch", "old member")
        }
        async with Admin(broker.bootstrap_servers) as admin:
            assert not [name for name in await admin.list_topics() if "audit" in name]


async def test_a_stopped_audit_says_what_is_known_and_leaves_no_process(tmp_path):
    async with semel.Broker(data=tmp_path, port=0) as broker:
        audit = WorkloadAudit({"bootstrap.servers": broker.bootstrap_servers}, HARD)
        running = asyncio.create_task(audit.run())
        begun = asyncio.Event()
        audit._progress = lambda line: begun.set() if audit.history.transfers else None
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        report = audit.report()
        assert not report.complete
        assert "before it was stopped" in report.verdict
        assert not any(worker.is_running for worker in audit._workers.values())


async def test_records_that_vanish_are_found(tmp_path, monkeypatch):
    """A broker that loses acknowledged records: those of one partition are deleted meanwhile."""
    async with semel.Broker(data=tmp_path, port=0) as broker:
        calm = WorkloadPlan(seconds=4, seed=1, writers=1, kills_per_minute=0, pauses_per_minute=0)
        audit = WorkloadAudit({"bootstrap.servers": broker.bootstrap_servers}, calm)
        ending = audit._end_transactions

        async def end_and_lose(admin: Admin) -> None:
            await ending(admin)
            place = semel.TopicPartition(audit.transfers, 0)
            ends = await admin.list_offsets({place: -1})
            await admin.delete_records({place: ends[place].offset // 2})

        monkeypatch.setattr(audit, "_end_transactions", end_and_lose)
        report = await audit.run()
        assert {Anomaly.LOST, Anomaly.UNSTABLE} <= set(report.findings.counts)


def test_a_plan_that_makes_no_sense_is_refused():
    with pytest.raises(UsageError, match="seconds"):
        WorkloadPlan(seconds=0)


async def test_a_worker_that_two_see_ended_has_one_successor(monkeypatch):
    """Two processes with one life would write the same transfers: the audit itself would be red."""
    audit = WorkloadAudit({"bootstrap.servers": "localhost:1"}, HARD)
    started: list[int] = []

    async def start(worker: WorkerProcess) -> None:
        await asyncio.sleep(0)  # as long as a process takes to begin
        started.append(worker.job.life)

    monkeypatch.setattr(WorkerProcess, "start", start)
    first = await audit._start(audit._job("transfers", "w", 0))
    await asyncio.gather(audit._replace(first), audit._replace(first), audit._replace(first))
    assert started == [0, 1]
    assert not audit._workers["w"].has_ended
