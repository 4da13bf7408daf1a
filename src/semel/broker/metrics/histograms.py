"""Counts by bound, as Prometheus wants them: each with all below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import HistogramMetricFamily


def add_histogram(
    family: HistogramMetricFamily,
    labels: Sequence[str],
    bounds: Sequence[float],
    counts: Sequence[int],
    total: float,
) -> None:
    so_far, buckets = 0, []
    for bound, number in zip([*map(str, bounds), "+Inf"], counts, strict=True):
        so_far += number
        buckets.append((bound, so_far))
    family.add_metric(labels, buckets, total)
