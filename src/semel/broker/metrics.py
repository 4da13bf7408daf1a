"""Metrics for Prometheus, on a port of their own, and only where one is asked for.

Nothing is kept up to date for this: the broker counts plain numbers (`transaction_counts`), and the
rest is looked up on the loop when somebody fetches the page. `prometheus-client` is imported then.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semel.broker.addresses import Address
from semel.broker.coordinators.transaction_counts import LATENCY_BUCKETS_MS, TransactionCounts
from semel.broker.start_failures import listening_on
from semel.core.transactions.states import TxnState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from semel.broker.coordinators.transactions import Transactions
    from semel.broker.server import Broker

log = logging.getLogger("semel.metrics")

LONGEST_REQUEST = 8192
PREFIX = "semel_transactions"


class Metrics:
    """Answers every GET with the page."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._socket: socket.socket | None = None

    def start(self) -> None:
        address = Address(self._broker.listen_address.host, self._broker.settings["metrics.port"])
        with listening_on(address):
            family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
            self._socket = socket.create_server(address, family=family)
        self._broker.spawn(self._listen(self._socket))

    async def stop(self) -> None:
        if self._socket is not None:
            self._socket.close()

    @property
    def port(self) -> int:
        assert self._socket is not None
        number: int = self._socket.getsockname()[1]
        return number

    def page(self) -> bytes:
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry()
        registry.register(Collector(self._broker))
        return generate_latest(registry)

    async def _listen(self, listening: socket.socket) -> None:
        async with await asyncio.start_server(
            self._answer, sock=listening, limit=LONGEST_REQUEST
        ) as server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                request = await reader.readuntil(b"\r\n\r\n")
            found = request.startswith(b"GET ")
            page = self.page() if found else b""
            status = b"200 OK" if found else b"405 Method Not Allowed"
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                b"Content-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(page)) + page
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            log.debug("a client of the metrics page went away")
        finally:
            writer.close()


class Collector:
    """What Prometheus calls for each page."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        transactions: Transactions | None = vars(self._broker).get("transactions")
        if transactions is not None:
            yield from _counted(transactions.counts)
            yield from _present(transactions, self._broker.now_ms())
        yield _stable_lag(self._broker)
        yield from _doors(self._broker)


def _counted(counts: TransactionCounts) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    ended = CounterMetricFamily(PREFIX, "Transactions completed", labels=["outcome"])
    ended.add_metric(["commit"], counts.committed)
    ended.add_metric(["abort"], counts.aborted)
    yield ended
    forced = CounterMetricFamily(
        f"{PREFIX}_forced", "Producers fenced by force, by cause", labels=["cause"]
    )
    for cause, times in counts.forced.items():
        forced.add_metric([cause], times)
    yield forced
    failures = CounterMetricFamily(
        f"{PREFIX}_failures", "Attempts to end a transaction that were refused", labels=["error"]
    )
    for error, times in counts.failures.items():
        failures.add_metric([error.name], times)
    yield failures
    latency = HistogramMetricFamily(
        f"{PREFIX}_end_seconds", "From the arrival of EndTxn to its answer"
    )
    total, buckets = 0, []
    bounds = [str(bound / 1000) for bound in LATENCY_BUCKETS_MS] + ["+Inf"]
    for bound, times in zip(bounds, counts.latency_buckets, strict=True):
        total += times
        buckets.append((bound, total))
    latency.add_metric([], buckets, counts.latency_sum_ms / 1000)
    yield latency


def _present(transactions: Transactions, now_ms: int) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    by_state = dict.fromkeys(TxnState, 0)
    oldest_ms = 0
    for txn in transactions.known():
        by_state[txn.state] += 1
        if txn.state is TxnState.ONGOING:
            oldest_ms = max(oldest_ms, now_ms - txn.started_at_ms)
    states = GaugeMetricFamily(f"{PREFIX}_ids", "Transactional ids by state", labels=["state"])
    for state, number in by_state.items():
        states.add_metric([state.kafka_name], number)
    yield states
    oldest = GaugeMetricFamily(f"{PREFIX}_oldest_open_seconds", "Age of the oldest open one")
    oldest.add_metric([], oldest_ms / 1000)
    yield oldest
    queued = GaugeMetricFamily(
        f"{PREFIX}_markers_queued", "Markers that wait for their leader", labels=["broker"]
    )
    for broker, number in transactions.markers.queued.items():
        queued.add_metric([broker], number)
    yield queued


def _doors(broker: Broker) -> Iterator[Metric]:
    """Of listeners with TLS or SASL."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    expiry = GaugeMetricFamily(
        "semel_tls_certificate_expiry_timestamp_seconds",
        "When the certificate of a listener expires",
        labels=["listener"],
    )
    tried = CounterMetricFamily(
        "semel_authentications",
        "How clients' attempts to say who they are ended",
        labels=["listener", "mechanism", "outcome"],
    )
    for name, listener in broker.listeners.all.items():
        if listener.tls is not None:
            expiry.add_metric([name], listener.tls.expires_at_ms / 1000)
        if listener.sasl is not None:
            for (mechanism, outcome), times in listener.sasl.counts.items():
                tried.add_metric([name, mechanism, outcome], times)
    yield expiry
    yield tried


def _stable_lag(broker: Broker) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    lag = GaugeMetricFamily(
        "semel_last_stable_offset_lag",
        "Records held back from committed readers; partitions without any are left out",
        labels=["topic", "partition"],
    )
    for partition in broker.partitions:
        held_back = partition.high_watermark - partition.last_stable_offset
        if held_back:
            lag.add_metric([partition.topic.name, str(partition.index)], held_back)
    return lag
