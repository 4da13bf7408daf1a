"""Exactly-once pipelines between Kafka and Spark. Needs the extra `semel[spark]`."""

from semel.spark.committer import BatchFailed
from semel.spark.ledger import StaleCheckpoint
from semel.spark.session import session
from semel.spark.sink import ExactlyOnceSink, start, write
from semel.spark.source import register

__all__ = [
    "BatchFailed",
    "ExactlyOnceSink",
    "StaleCheckpoint",
    "register",
    "session",
    "start",
    "write",
]
