"""The auditor for tests: does a Kafka keep what it promises, and is this topic in order?

    from semel.testing import audit

    report = audit.run_workload("localhost:9092", seconds=60)
    assert report.clean, report

`semel audit` does the same from the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from semel.audit import Anomaly as Anomaly
from semel.audit import AuditReport as AuditReport
from semel.audit import Finding as Finding
from semel.audit import TopicAudit as TopicAudit
from semel.audit import WorkloadAudit as WorkloadAudit
from semel.audit import WorkloadPlan as WorkloadPlan
from semel.audit import as_page as as_page
from semel.audit import as_text as as_text

Servers = str | Mapping[str, Any]
"""An address, or client settings in a dict: `{"bootstrap.servers": …, "security.protocol": …}`."""


def run_workload(
    servers: Servers, plan: WorkloadPlan | None = None, *, seconds: float | None = None
) -> AuditReport:
    """Runs transactions under kills, pauses, cut connections and zombies, and judges what is left.

    Blocks for as long as the plan says (60 s if nothing does) and a little longer. The processes
    that are killed are its own: nothing is done to the brokers.
    """
    if plan is None:
        plan = WorkloadPlan() if seconds is None else WorkloadPlan(seconds=seconds)
    return asyncio.run(WorkloadAudit(_settings(servers), plan).run())


def read_topics(
    servers: Servers, topics: str | Iterable[str], *, unique: str | None = None
) -> AuditReport:
    """Reads topics and judges what lies there. Nothing is written.

    `unique` is what no two committed records may share: `key`, `value`, `value.FIELD` (of JSON) or
    `header.NAME`.
    """
    names = [topics] if isinstance(topics, str) else topics
    return asyncio.run(TopicAudit(_settings(servers), names, unique=unique).run())


def _settings(servers: Servers) -> dict[str, Any]:
    return {"bootstrap.servers": servers} if isinstance(servers, str) else dict(servers)
