"""Transactions: what was counted, and what there is now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from semel.broker.coordinators.transaction_counts import LATENCY_BUCKETS_MS, TransactionCounts
from semel.broker.metrics.histograms import add_histogram
from semel.core.transactions.states import TxnState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from semel.broker.coordinators.transactions import Transactions

PREFIX = "semel_transactions"


def transaction_metrics(transactions: Transactions, now_ms: int) -> Iterator[Metric]:
    yield from _counted(transactions.counts)
    yield from _present(transactions, now_ms)


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
    bounds_s = [bound / 1000 for bound in LATENCY_BUCKETS_MS]
    add_histogram(latency, [], bounds_s, counts.latency_buckets, counts.latency_sum_ms / 1000)
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
