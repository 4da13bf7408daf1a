"""Megabytes per second over TLS, and the brokers' CPU per megabyte, beside Apache Kafka's TLS.

As `throughput`, with one certificate for both brokers. The client's own TLS costs as much as the
broker's, on the same machine: the CPU column is the one to read.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.ports import free_port
from tests.support.brokers.process import SemelProcess
from tests.support.certificates import Authority

from benchmarks.side_by_side import Report, Side, in_memory, measure
from benchmarks.throughput import consume, make_topic, produce

SIZE = 1024


def run(rounds: int = 5, megabytes: int = 600) -> None:
    report = Report("Throughput over TLS")
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(Path(directory))
        client = {"security.protocol": "SSL", "ssl.ca.location": str(authority.file)}
        with over_tls(str(authority.issue("CN=localhost"))) as sides:
            topic = "bench-tls"
            for side in sides:
                make_topic(side, topic, client)
            work = produce(topic, SIZE, megabytes, client)
            report.add(
                f"produce {SIZE} B over TLS",
                measure(sides, work, "MB", rounds, megabytes=3 * megabytes),
                goal=1.0,
            )
            work = consume(topic, SIZE, megabytes, client)
            report.add(
                f"consume {SIZE} B over TLS, read_committed",
                measure(sides, work, "MB", rounds),
                goal=1.0,
            )
    report.finish()


@contextmanager
def over_tls(certificate: str) -> Iterator[list[Side]]:
    """Both brokers; the addresses are those of their TLS listeners."""
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
    ours, theirs = free_port(), free_port()
    kafka = ApacheKafka(dict(keys), heap="1g", own_session=True)
    controller = free_port()
    places = f"PLAINTEXT://127.0.0.1:{kafka.port},SSL://127.0.0.1:{theirs}"
    kafka.settings |= {
        "listeners": f"{places},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": places,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    }
    semel = SemelProcess(dict(keys), own_session=True)
    semel.settings["listeners"] = f"PLAINTEXT://127.0.0.1:{semel.port},SSL://127.0.0.1:{ours}"
    with in_memory(), kafka, semel:
        assert kafka.process is not None
        yield [
            Side("Semel", f"127.0.0.1:{ours}", semel.pid),
            Side("Apache Kafka", f"127.0.0.1:{theirs}", kafka.process.pid),
        ]


if __name__ == "__main__":
    run()
