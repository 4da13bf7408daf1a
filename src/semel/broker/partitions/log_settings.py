"""A topic's settings as its logs need them."""

from collections.abc import Mapping

from semel.broker.settings.definitions import Value
from semel.store.interface import LogConfig


def log_config(config: Mapping[str, Value]) -> LogConfig:
    policy = config["cleanup.policy"]
    return LogConfig(
        segment_bytes=config["segment.bytes"],
        segment_ms=config["segment.ms"],
        segment_index_bytes=config["segment.index.bytes"],
        index_interval_bytes=config["index.interval.bytes"],
        retention_ms=config["retention.ms"],
        retention_bytes=config["retention.bytes"],
        compact="compact" in policy,
        delete="delete" in policy,
        min_cleanable_dirty_ratio=config["min.cleanable.dirty.ratio"],
        min_compaction_lag_ms=config["min.compaction.lag.ms"],
        max_compaction_lag_ms=config["max.compaction.lag.ms"],
        delete_retention_ms=config["delete.retention.ms"],
        file_delete_delay_ms=config["file.delete.delay.ms"],
        max_message_bytes=config["max.message.bytes"],
    )
