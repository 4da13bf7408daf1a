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
from semel.spark.query_batch import QueryBatch, origins

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
    logged = _logged(query, batch_id)
    if logged is None:
        raise RefusedError(f"Spark has no offsets for batch {batch_id} of query {query_id}")
    before = _logged(query, batch_id - 1) if batch_id > 0 else None
    end = _offsets(logged)
    start = origins(end) if before is None else _offsets(before)
    metadata = logged.metadataOpt()
    planned_ms = metadata.get().batchTimestampMs() if metadata.isDefined() else None
    return RunningBatch(run_id, QueryBatch(query_id, batch_id, start, end, planned_ms), query)


def refuse_modes(query: Any) -> None:
    trigger = query.trigger().toString()
    for mode in ("Continuous", "RealTime"):
        if mode in trigger:
            raise RefusedError(
                f"{mode} triggers have no micro-batches, so nothing to commit atomically"
            )


def _query(batch: DataFrame, query_id: str) -> Any:
    session = batch.sparkSession._jsparkSession
    for entry in session.sharedState().activeStreamingQueries().values():
        if entry.id().toString() == query_id:
            return entry
    raise RefusedError(f"query {query_id} is not running")


def _logged(query: Any, batch_id: int) -> Any:
    """The entry of Spark's offset log, None if there is none."""
    found = query.offsetLog().get(batch_id)
    return found.get() if found.isDefined() else None


def _offsets(logged: Any) -> tuple[Any, ...]:
    offsets = logged.offsets()
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
