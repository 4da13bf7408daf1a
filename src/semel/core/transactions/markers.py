"""Which partitions of a prepared transaction still lack their marker, and what an answer means.

The table is that of Kafka's TransactionMarkerRequestCompletionHandler.
"""

from enum import Enum

from semel.core.transactions.commands import WriteMarkers
from semel.core.transactions.transaction import TopicPartition
from semel.wire.errors import ErrorCode


class MarkerVerdict(Enum):
    WRITTEN = "the marker is in the log"
    AGAIN = "look up the leader and send it again"
    CANCEL = "another coordinator or producer epoch rules there: stop sending for this transaction"
    DROP = "the partition can hold no transactional data: it needs no marker"
    BUG = "nothing we sent can lead to this answer"


VERDICTS: dict[ErrorCode, MarkerVerdict] = {
    ErrorCode.NONE: MarkerVerdict.WRITTEN,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: MarkerVerdict.AGAIN,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: MarkerVerdict.AGAIN,
    ErrorCode.NOT_ENOUGH_REPLICAS: MarkerVerdict.AGAIN,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: MarkerVerdict.AGAIN,
    ErrorCode.REQUEST_TIMED_OUT: MarkerVerdict.AGAIN,
    ErrorCode.KAFKA_STORAGE_ERROR: MarkerVerdict.AGAIN,
    ErrorCode.NETWORK_EXCEPTION: MarkerVerdict.AGAIN,  # our own word for a lost connection
    ErrorCode.INVALID_PRODUCER_EPOCH: MarkerVerdict.CANCEL,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: MarkerVerdict.CANCEL,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: MarkerVerdict.DROP,
    ErrorCode.UNSUPPORTED_VERSION: MarkerVerdict.DROP,
}


class MarkerProgress:
    """The markers of one prepared transaction; `partitions` are those without theirs."""

    __slots__ = ("cancelled", "order", "partitions")

    def __init__(self, order: WriteMarkers) -> None:
        self.order = order
        self.partitions = set(order.partitions)
        self.cancelled = False

    @property
    def complete(self) -> bool:
        return not self.partitions and not self.cancelled

    def answered(self, partition: TopicPartition, error: ErrorCode) -> MarkerVerdict:
        """Take a partition's answer into account."""
        verdict = VERDICTS.get(error, MarkerVerdict.BUG)
        if verdict is MarkerVerdict.CANCEL:
            self.cancelled = True
        elif verdict in (MarkerVerdict.WRITTEN, MarkerVerdict.DROP):
            self.partitions.discard(partition)
        return verdict

    def forget(self, partition: TopicPartition) -> None:
        """Its topic was deleted: a marker has nowhere to go, and must not hold up the others."""
        self.partitions.discard(partition)
