"""What is counted about transactions: plain numbers, read by `metrics` when somebody looks."""

from bisect import bisect_left
from collections import Counter

from semel.core.transactions.states import COMPLETE_COMMIT, TxnState
from semel.wire.errors import ErrorCode

LATENCY_BUCKETS_MS = (0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0)


class TransactionCounts:
    """Counting costs nanoseconds; whatever takes longer waits until somebody looks."""

    __slots__ = ("aborted", "committed", "failures", "forced", "latency_buckets", "latency_sum_ms")

    def __init__(self) -> None:
        self.committed = 0
        self.aborted = 0
        self.forced: Counter[str] = Counter()
        """Forced ends by their kind: timed out, taken over."""
        self.failures: Counter[ErrorCode] = Counter()
        """Refused requests by error."""
        self.latency_buckets = [0] * (len(LATENCY_BUCKETS_MS) + 1)
        self.latency_sum_ms = 0.0

    def completed(self, state: TxnState) -> None:
        if state is COMPLETE_COMMIT:
            self.committed += 1
        else:
            self.aborted += 1

    def was_forced(self, reason: str) -> None:
        self.forced[" ".join(reason.split()[:2])] += 1

    def ended(self, error: ErrorCode, milliseconds: float) -> None:
        """An EndTxn was answered."""
        if error is not ErrorCode.NONE:
            self.failures[error] += 1
            return
        self.latency_buckets[bisect_left(LATENCY_BUCKETS_MS, milliseconds)] += 1
        self.latency_sum_ms += milliseconds
