"""What a Produce answer means for a batch: accepted, sent again, split, renumbered or given up.

The table of Kafka's Sender.completeBatch and TransactionManager.canRetry.
"""

from enum import Enum

from semel.wire.errors import ErrorCode, ErrorKind

E = ErrorCode

_GAPS = frozenset({E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID})
_TOO_LARGE = frozenset({E.MESSAGE_TOO_LARGE, E.RECORD_LIST_TOO_LARGE})

# The partition's leader is not where it was thought to be: ask for the metadata before the retry.
STALE_METADATA = frozenset(
    {
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.LEADER_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REPLICA_NOT_AVAILABLE,
        E.NETWORK_EXCEPTION,
        E.KAFKA_STORAGE_ERROR,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_TOPIC_ID,
        E.INCONSISTENT_TOPIC_ID,
    }
)


class ProduceVerdict(Enum):
    ACCEPTED = "accepted"
    AGAIN = "send again"
    SPLIT = "send in two halves"
    RENUMBER = "bump the epoch, number the partition's batches anew, send again"
    GIVE_UP = "give up"


def judge_produce(
    code: ErrorCode,
    *,
    is_oldest: bool,
    records: int,
    transactional: bool,
    idempotent: bool,
    expired: bool,
) -> ProduceVerdict:
    """`is_oldest`: nothing before this batch is outstanding. `expired`: no time for a retry."""
    if code.kind is ErrorKind.NONE:
        return (
            ProduceVerdict.ACCEPTED
        )  # DUPLICATE_SEQUENCE_NUMBER too: the first attempt was written
    if code in _TOO_LARGE and records > 1:
        return ProduceVerdict.SPLIT
    if expired:
        return ProduceVerdict.GIVE_UP
    if code in _GAPS and idempotent:
        if not is_oldest:
            return ProduceVerdict.AGAIN  # an older batch of ours is missing, and will be sent again
        return ProduceVerdict.GIVE_UP if transactional else ProduceVerdict.RENUMBER
    return ProduceVerdict.AGAIN if code.retriable else ProduceVerdict.GIVE_UP
