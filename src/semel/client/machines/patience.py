"""Patience as data: how long to wait before trying again, and until when at all."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double up to a bound. `dice`, in [0, 1), comes from outside: all here is pure."""

    initial_ms: float = 100.0
    max_ms: float = 1000.0
    jitter: float = 0.2

    def delay_ms(self, attempt: int, dice: float = 0.5) -> float:
        """The wait before attempt number `attempt`, which counts from 1."""
        # 2**30 is beyond any bound that makes sense, and keeps the number small.
        plain = min(self.initial_ms * 2.0 ** min(attempt - 1, 30), self.max_ms)
        return plain * (1 + self.jitter * (2 * dice - 1))


@dataclass(frozen=True, slots=True)
class Deadline:
    at_ms: float

    @classmethod
    def after(cls, now_ms: float, timeout_ms: float) -> "Deadline":
        return cls(now_ms + timeout_ms)

    def remaining_ms(self, now_ms: float) -> float:
        return max(0.0, self.at_ms - now_ms)

    def has_passed(self, now_ms: float) -> bool:
        return now_ms >= self.at_ms
