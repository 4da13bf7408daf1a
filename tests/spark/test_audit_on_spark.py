"""The audit of topics as a Spark job says what the plain one says."""

from __future__ import annotations

import asyncio

import pytest

from semel.audit import Anomaly, TopicAudit
from semel.audit.spark import SparkTopicAudit
from semel.client.blocking import Producer
from semel.errors import UsageError

pytestmark = pytest.mark.spark


def test_both_find_the_same(kafka, spark) -> None:
    servers, topic = kafka.bootstrap, kafka.topic()
    settings = {"bootstrap.servers": servers}
    with Producer(servers, transactional_id="audited") as producer:
        for number in range(20):
            with producer.transaction():
                producer.send(topic, b"v%d" % number, b"k%d" % (number % 18))
    plain = asyncio.run(TopicAudit(settings, [topic], unique="key").run())
    large = asyncio.run(SparkTopicAudit(settings, [topic], unique="key", spark=spark).run())
    assert plain.findings.counts == large.findings.counts == {Anomaly.DUPLICATE_VALUE: 2}
    for fact in ("records", "batches", "committed in partitions", "partitions"):
        assert plain.facts[fact] == large.facts[fact]


def test_an_expression_that_spark_does_not_know_is_told_in_a_sentence(kafka, spark) -> None:
    servers, topic = kafka.bootstrap, kafka.topic()
    settings = {"bootstrap.servers": servers}
    with Producer(servers) as producer:
        producer.send(topic, b"v")
    with pytest.raises(UsageError, match="no expression of Spark"):
        asyncio.run(SparkTopicAudit(settings, [topic], unique="nowhere + 1", spark=spark).run())
