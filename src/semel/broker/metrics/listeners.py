"""Listeners: certificates that expire, and how clients said who they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from semel.broker.server import Broker


def listener_metrics(broker: Broker) -> Iterator[Metric]:
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
