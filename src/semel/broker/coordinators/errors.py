"""A coordinator's errors as others tell them: those who answer older clients, and Produce."""

from collections.abc import Mapping

from semel.core.transactions.transaction import TopicPartition
from semel.wire.errors import ErrorCode

Errors = Mapping[TopicPartition, ErrorCode]


def fenced_for(error: ErrorCode, version: int, known_since: int) -> ErrorCode:
    """Clients from before `known_since` do not know PRODUCER_FENCED (KIP-588)."""
    if error is ErrorCode.PRODUCER_FENCED and version < known_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


_AS_NOT_ENOUGH_REPLICAS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


def for_produce(errors: Errors, version: int) -> Errors:
    """Producers know coordinators only from requests to them: their errors are told as those of a
    partition that cannot write just now (Kafka's ReplicaManager, AddPartitionsToTxnManager)."""
    if not any(errors.values()):
        return errors
    return {partition: _produce_error(error, version) for partition, error in errors.items()}


def _produce_error(error: ErrorCode, version: int) -> ErrorCode:
    if error is ErrorCode.NONE:
        return error
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error in _AS_NOT_ENOUGH_REPLICAS:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.CONCURRENT_TRANSACTIONS and version < 12:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < 11:
        return ErrorCode.INVALID_TXN_STATE
    return error
