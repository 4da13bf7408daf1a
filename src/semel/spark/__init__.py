"""Exactly-once pipelines between Kafka and Spark. Needs the extra `semel[spark]`.

Names are loaded when first used: the processes in which Spark plans a source need few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from semel.extras import needs_extra

if TYPE_CHECKING:
    from semel.spark.pipeline import Pipeline as Pipeline
    from semel.spark.query_batch import StaleCheckpoint as StaleCheckpoint
    from semel.spark.sessions.session import session as session
    from semel.spark.sink.committer import BatchFailed as BatchFailed
    from semel.spark.sink.sink import ExactlyOnceSink as ExactlyOnceSink
    from semel.spark.sink.sink import start as start
    from semel.spark.sink.sink import write as write
    from semel.spark.source.source import register as register

#: Public name → module that has it.
_PUBLIC = {
    "BatchFailed": "sink.committer",
    "ExactlyOnceSink": "sink.sink",
    "Pipeline": "pipeline",
    "StaleCheckpoint": "query_batch",
    "register": "source.source",
    "session": "sessions.session",
    "start": "sink.sink",
    "write": "sink.sink",
}
__all__ = [
    "BatchFailed",
    "ExactlyOnceSink",
    "Pipeline",
    "StaleCheckpoint",
    "register",
    "session",
    "start",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'semel.spark' has no attribute {name!r}")
    with needs_extra("spark", f"semel.spark.{name}"):
        value = getattr(import_module(f"semel.spark.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value
