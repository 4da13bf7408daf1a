"""What the broker's settings allow, as the coordinator needs to know it."""

from dataclasses import dataclass

DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Rules:
    max_timeout_ms: int = 15 * 60 * 1000
    """transaction.max.timeout.ms"""
    id_expiration_ms: int = 7 * DAY_MS
    """transactional.id.expiration.ms"""
    two_phase: bool = False
    """transaction.two.phase.commit.enable (KIP-939)"""
