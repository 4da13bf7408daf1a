"""When Spark begins a micro-batch, as keywords that editors know."""

from __future__ import annotations

from typing import Any, TypedDict

from pyspark.sql.streaming.readwriter import DataStreamWriter


class Trigger(TypedDict, total=False):
    """One of them, or none: then each batch begins when the one before is done."""

    processingTime: str
    """A batch at every such interval: `"10 seconds"`."""
    availableNow: bool
    """All that is there now, in as many batches as limits ask for; then the query ends."""


def triggered(writer: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    chosen: dict[str, Any] = {**trigger}
    return writer.trigger(**chosen) if chosen else writer
