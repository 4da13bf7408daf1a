"""The auditor finds Apache Kafka and Semel clean, however long it looks."""

from __future__ import annotations

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess

from semel.testing import audit

HARD = {"kills_per_minute": 30, "pauses_per_minute": 10, "cuts_per_minute": 20}


@pytest.mark.interop
def test_apache_kafka_is_found_clean_under_kills(apache_kafka: ApacheKafka) -> None:
    plan = audit.WorkloadPlan(seconds=20, seed=1, **HARD)
    report = audit.run_workload(apache_kafka.bootstrap, plan)
    assert report.clean, str(report)
    assert report.facts["kills"] > 0


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_apache_kafka_is_found_clean_after_ten_minutes_of_kills() -> None:
    with ApacheKafka() as kafka:
        report = audit.run_workload(kafka.bootstrap, audit.WorkloadPlan(seconds=600, **HARD))
    assert report.clean, str(report)
    print(report)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_semel_is_found_clean_after_ten_minutes_of_kills() -> None:
    with SemelProcess() as broker:
        report = audit.run_workload(broker.bootstrap, audit.WorkloadPlan(seconds=600, **HARD))
    assert report.clean, str(report)
    print(report)
