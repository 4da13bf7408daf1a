"""What Prometheus gets for each page: counted numbers, and what is looked up now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING

from semel.broker.metrics.histograms import add_histogram
from semel.broker.metrics.listeners import listener_metrics
from semel.broker.metrics.loop_delay import BUCKETS_S as DELAY_BUCKETS_S
from semel.broker.metrics.requests import BUCKETS_S, MOST_TOPICS, OTHERS
from semel.broker.metrics.transactions import transaction_metrics
from semel.wire.errors import ErrorCode
from semel.wire.messages import APIS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from semel.broker.coordinators.transactions import Transactions
    from semel.broker.metrics.page import Metrics
    from semel.broker.server import Broker

#: Partitions that are told of by themselves; those that hold back most come first.
MOST_PARTITIONS = 1_000


class MetricsCollector:
    """What `prometheus_client` calls for each page."""

    def __init__(self, broker: Broker, metrics: Metrics) -> None:
        self._broker = broker
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        broker = self._broker
        transactions: Transactions | None = vars(broker).get("transactions")
        if transactions is not None:
            yield from transaction_metrics(transactions, broker.now_ms())
        yield _stable_lag(broker)
        yield from listener_metrics(broker)
        yield from self._requests()
        yield from self._topics()
        yield from self._groups()
        yield from self._life()

    def _requests(self) -> Iterator[Metric]:
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        meter = self._metrics.requests
        times = HistogramMetricFamily(
            "semel_request_seconds", "From the arrival of a request to its answer", labels=["api"]
        )
        errors = CounterMetricFamily(
            "semel_request_errors", "Errors in answers", labels=["api", "error"]
        )
        waiting = GaugeMetricFamily(
            "semel_requests_waiting", "Requests that wait for their answers", labels=["api"]
        )
        for api_key, counts in sorted(meter.apis.items()):
            name = APIS[api_key][0]
            add_histogram(times, [name], BUCKETS_S, counts.buckets, counts.sum_s)
            for code, number in counts.errors.items():
                errors.add_metric([name, ErrorCode.of(code).name], number)
            waiting.add_metric([name], meter.waiting[api_key])
        yield from (times, errors, waiting)

    def _topics(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        meter = self._metrics.requests
        received = CounterMetricFamily(
            "semel_topic_received_bytes", "Bytes of record batches that came in", labels=["topic"]
        )
        for topic, size in meter.bytes_in().items():
            received.add_metric([topic], size)
        sent = CounterMetricFamily(
            "semel_topic_sent_bytes", "Bytes of record batches that went out", labels=["topic"]
        )
        for topic, size in meter.bytes_out().items():
            sent.add_metric([topic], size)
        kept = GaugeMetricFamily("semel_topic_log_bytes", "Bytes kept in logs", labels=["topic"])
        for topic, size in _largest(self._log_sizes()):
            kept.add_metric([topic], size)
        count = GaugeMetricFamily("semel_partitions", "Partitions on this broker")
        count.add_metric([], sum(1 for _ in self._broker.partitions))
        yield from (received, sent, kept, count)

    def _log_sizes(self) -> Counter[str]:
        sizes: Counter[str] = Counter()
        for partition in self._broker.partitions:
            sizes[partition.topic.name] += partition.log.size
        return sizes

    def _groups(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        groups = vars(self._broker).get("groups")
        family = GaugeMetricFamily("semel_groups", "Groups by state", labels=["state"])
        if groups is not None:
            _, listed = groups.list([], [])
            for state, number in Counter(group.state for group in listed).items():
                family.add_metric([state], number)
        yield family

    def _life(self) -> Iterator[Metric]:
        from prometheus_client import ProcessCollector
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        connections = GaugeMetricFamily("semel_connections", "Open connections of clients")
        connections.add_metric([], self._broker.open_connections)
        yield connections
        delay = HistogramMetricFamily(
            "semel_event_loop_delay_seconds", "How late the event loop comes to what is due"
        )
        late = self._metrics.loop_delay
        add_histogram(delay, [], DELAY_BUCKETS_S, late.buckets, late.sum_s)
        yield delay
        syncs = self._broker.partitions.sync_times
        synced = CounterMetricFamily("semel_fsyncs", "Times that files were brought to the disk")
        synced.add_metric([], syncs.count)
        seconds = CounterMetricFamily("semel_fsync_seconds", "Time that this took, in all")
        seconds.add_metric([], syncs.seconds)
        yield from (synced, seconds)
        yield from ProcessCollector(registry=None).collect()


def _largest(sizes: Counter[str]) -> Iterator[tuple[str, int]]:
    """So many topics by name, and the others together."""
    shown = sizes.most_common(MOST_TOPICS)
    yield from shown
    rest = sizes.total() - sum(size for _, size in shown)
    if len(sizes) > MOST_TOPICS:
        yield OTHERS, rest


def _stable_lag(broker: Broker) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    lag = GaugeMetricFamily(
        "semel_last_stable_offset_lag",
        "Records held back from committed readers; partitions without any are left out",
        labels=["topic", "partition"],
    )
    held = (
        (partition.high_watermark - partition.last_stable_offset, partition.topic.name, partition)
        for partition in broker.partitions
    )
    most = nlargest(MOST_PARTITIONS, (each for each in held if each[0]), key=lambda each: each[0])
    for number, name, partition in most:
        lag.add_metric([name, str(partition.index)], number)
    return lag
