"""From a coordinator's reply, there at once or later, to the response that a handler returns."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from semel.wire.errors import ErrorCode


def when(reply: Any, respond: Callable[[Any], Any]) -> Any:
    """`respond(reply)`, or a future of it where the reply is one. No task is made."""
    if not isinstance(reply, asyncio.Future):
        return respond(reply)
    response = reply.get_loop().create_future()

    def done(reply: asyncio.Future[Any]) -> None:
        if response.cancelled():
            return
        if reply.cancelled():
            response.cancel()
            return
        try:
            response.set_result(respond(reply.result()))
        except Exception as problem:
            response.set_exception(problem)

    reply.add_done_callback(done)
    return response


def when_all(replies: list[Any], respond: Callable[[list[Any]], Any]) -> Any:
    """The same for several replies, of which any may be a future."""
    if not any(isinstance(reply, asyncio.Future) for reply in replies):
        return respond(replies)
    return when(asyncio.ensure_future(_gather(replies)), respond)


async def _gather(replies: list[Any]) -> list[Any]:
    return [await reply if isinstance(reply, asyncio.Future) else reply for reply in replies]


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


def for_produce(errors: Mapping[Any, ErrorCode], version: int) -> Mapping[Any, ErrorCode]:
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
