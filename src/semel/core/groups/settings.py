"""The limits and intervals of a group coordinator, under Kafka's names and with its defaults."""

from dataclasses import dataclass

_UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True)
class GroupSettings:
    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = _UNLIMITED
    max_bytes: int = _UNLIMITED  # what the members of one group say, of either protocol
    max_record_bytes: int = 1_048_588  # message.max.bytes: what the log of a group may take
    # CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS: a constant in Kafka too.
    new_member_join_timeout_ms: int = 5 * 60 * 1000

    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    # A member that waits for partitions of others is asked to come back sooner than the rest.
    consumer_waiting_heartbeat_interval_ms: int = 250
    consumer_max_size: int = _UNLIMITED
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: str = "bidirectional"
    # Kafka waits a second between assignments of a group (KIP-1263), so that many joins cost one
    # computation. Ours is cheap; a broker waits a moment all the same, because of what becomes of
    # clients otherwise (see `consumer.heartbeat.settle`).
    consumer_assignment_interval_ms: int = 0
    consumer_regex_refresh_interval_ms: int = 600_000

    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000

    @property
    def may_upgrade(self) -> bool:
        return self.consumer_migration_policy in ("bidirectional", "upgrade")

    @property
    def may_downgrade(self) -> bool:
        return self.consumer_migration_policy in ("bidirectional", "downgrade")
