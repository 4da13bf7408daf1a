"""What the running streaming query knows about a batch: its query, its run and its offsets.

Everything is asked of Spark's own query object, which reads its checkpoint through Spark's file
system; the checkpoint may be in a place that `open()` cannot reach.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from semel.errors import RefusedError
from semel.spark.query_batch import QueryBatch

_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"
# How Spark prints the state of any stateful operator of a physical plan.
_STATEFUL = "state info ["


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """A micro-batch, identified by what it reads."""

    run_id: str
    identity: QueryBatch
    query: Any

    @property
    def is_stateful(self) -> bool:
        plan = self.query.lastExecution().executedPlan().toString()
        return _STATEFUL in plan


def running_batch(batch: DataFrame, batch_id: int) -> RunningBatch:
    """Identify the micro-batch that `foreachBatch` was called with."""
    context = batch.sparkSession.sparkContext
    query_id = context.getLocalProperty(_QUERY_ID)
    run_id = context.getLocalProperty(_RUN_ID)
    if query_id is None or run_id is None:
        raise RefusedError("the sink works inside foreachBatch of a streaming query only")
    query = _query(batch, query_id)
    refuse_modes(query)
    end = _offsets(query, batch_id)
    if end is None:
        raise RefusedError(f"Spark has no offsets for batch {batch_id} of query {query_id}")
    start = _offsets(query, batch_id - 1) if batch_id > 0 else None
    if start is None:
        start = tuple(_origin(offset) for offset in end)
    return RunningBatch(run_id, QueryBatch(query_id, batch_id, start, end), query)


def refuse_modes(query: Any) -> None:
    trigger = query.trigger().toString()
    for mode in ("Continuous", "RealTime"):
        if mode in trigger:
            raise RefusedError(
                f"{mode} triggers have no micro-batches, so nothing to commit atomically"
            )


def source_positions(batch: QueryBatch) -> dict[tuple[str, int], int]:
    """Kafka offsets after the batch, of our own source or Spark's connector; others have none."""
    positions = {}
    for end in batch.end:
        topics = end.get("topics", end) if isinstance(end, dict) else {}
        for topic, partitions in topics.items():
            if not isinstance(partitions, dict):
                continue
            for partition, offset in partitions.items():
                if partition.isdigit() and isinstance(offset, int):
                    positions[topic, int(partition)] = offset
    return positions


def _query(batch: DataFrame, query_id: str) -> Any:
    session = batch.sparkSession._jsparkSession
    for entry in session.sharedState().activeStreamingQueries().values():
        if entry.id().toString() == query_id:
            return entry
    raise RefusedError(f"query {query_id} is not running")


def _offsets(query: Any, batch_id: int) -> tuple[Any, ...] | None:
    found = query.offsetLog().get(batch_id)
    if not found.isDefined():
        return None
    offsets = found.get().offsets()
    return tuple(_value(offsets.apply(place)) for place in range(offsets.size()))


def _value(offset: Any) -> Any:
    """An offset as plain JSON, so that two of them compare by meaning and not by spelling."""
    if not offset.isDefined():
        return None
    text = offset.get().json()
    try:
        return json.loads(text)
    except ValueError:
        return text


def _origin(end: Any) -> Any:
    """Where a query began: Spark does not log it, our own source carries it along."""
    return end.get("origin") if isinstance(end, dict) else None
