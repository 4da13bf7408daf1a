"""Exactly-once pipelines between Kafka and Spark. Needs the extra `semel[spark]`.

Names are loaded when first used: the processes in which Spark plans a source need few of them. The
exceptions are in `semel.errors`, with all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.lazy import lazy

if TYPE_CHECKING:
    from semel.spark.pipeline import Pipeline as Pipeline
    from semel.spark.pipeline import Progress as Progress
    from semel.spark.sessions.session import session as session
    from semel.spark.sink.keywords import SinkKeywords as SinkKeywords
    from semel.spark.sink.keywords import WriteKeywords as WriteKeywords
    from semel.spark.sink.sink import ExactlyOnceSink as ExactlyOnceSink
    from semel.spark.sink.sink import start as start
    from semel.spark.sink.sink import write as write
    from semel.spark.sink.triggers import Trigger as Trigger
    from semel.spark.source.keywords import SourceKeywords as SourceKeywords
    from semel.spark.source.source import register as register

#: Public name → module that has it.
_PUBLIC = {
    "ExactlyOnceSink": "semel.spark.sink.sink",
    "Pipeline": "semel.spark.pipeline",
    "Progress": "semel.spark.pipeline",
    "SinkKeywords": "semel.spark.sink.keywords",
    "SourceKeywords": "semel.spark.source.keywords",
    "Trigger": "semel.spark.sink.triggers",
    "WriteKeywords": "semel.spark.sink.keywords",
    "register": "semel.spark.source.source",
    "session": "semel.spark.sessions.session",
    "start": "semel.spark.sink.sink",
    "write": "semel.spark.sink.sink",
}
__all__ = [*_PUBLIC]

if not TYPE_CHECKING:  # a checker that saw it would believe in any name
    __getattr__, __dir__ = lazy(__name__, _PUBLIC, extra="spark")
