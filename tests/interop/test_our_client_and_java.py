"""Our client and Java's read each other's records, transactions and every compression included."""

from collections.abc import Callable

import pytest
from tests.support.brokers.apache_kafka import kafka_tool
from tests.support.brokers.process import SemelProcess

from semel.client import blocking

pytestmark = pytest.mark.interop

TOOLS = "org.apache.kafka.tools."
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def test_java_reads_what_our_producer_commits(
    semel: SemelProcess, topic: Callable[..., str]
) -> None:
    name = topic(1)
    for codec in CODECS:
        with blocking.Producer(
            semel.bootstrap, transactional_id=f"{name}-{codec}", compression_type=codec
        ) as producer:
            producer.init_transactions()
            for outcome in ("void", "good"):
                producer.begin_transaction()
                for number in range(3):
                    producer.send(name, f"{outcome}-{codec}-{number}".encode())
                if outcome == "void":
                    producer.flush()
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
    expected = [f"good-{codec}-{number}" for codec in CODECS for number in range(3)]
    read = kafka_tool(
        f"{TOOLS}consumer.ConsoleConsumer", "--bootstrap-server", semel.bootstrap, "--topic", name,
        "--from-beginning", "--isolation-level", "read_committed",
        "--max-messages", str(len(expected)), "--timeout-ms", "30000",
    )  # fmt: skip
    assert read.stdout.split() == expected


def test_our_consumer_reads_what_java_sends(semel: SemelProcess, topic: Callable[..., str]) -> None:
    name = topic(1)
    for codec in CODECS:
        kafka_tool(
            f"{TOOLS}ConsoleProducer", "--bootstrap-server", semel.bootstrap, "--topic", name,
            "--compression-codec", codec, stdin=f"{codec}-1\n{codec}-2\n",
        )  # fmt: skip
    expected = [f"{codec}-{number}".encode() for codec in CODECS for number in (1, 2)]
    found: list[bytes | None] = []
    with blocking.Consumer(
        semel.bootstrap,
        group_id=name,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.subscribe([name])
        while len(found) < len(expected):
            found += [record.value for record in consumer.poll(timeout_ms=1_000)]
    assert found == expected
