"""One module per Kafka API, named by its key: listing this directory is reading the protocol table.

A module defines `API_KEY`, `VERSIONS` (those of `semel.wire.messages.ADVERTISED`) and
`handle(ctx, request, version)`. It is imported when the first request of its kind arrives. One that
gains by it has `handle_many(ctx, requests, version)` as well: what one connection sent of its kind
in one go, answered by a list. Nothing is sent, and no other connection is read, before that.

`handle` returns one of

- a response: sent in this turn of the loop, in the order of the requests;
- a `Future` of a response (the hot paths that wait: Produce under `fsync`, a Fetch that waits for
  more): later requests of the connection are started meanwhile, answers keep their order;
- a coroutine (`async def handle`, where speed does not matter): run as a task, and later requests
  of this connection start when it is done, as in Kafka;
- `None`: no answer (Produce with acks 0).

An exception is answered with UNKNOWN_SERVER_ERROR in the response's own shape, and logged; handlers
need no `try`. `broker.failures.ApiError(code, message)`, raised anywhere below a handler, is
answered with that code in every error field of the response.
"""

from __future__ import annotations

import pkgutil
from asyncio import Future
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from semel.broker.settings.definitions import Value
from semel.wire.messages import ADVERTISED
from semel.wire.schema import Message

if TYPE_CHECKING:
    from types import ModuleType

    from semel.broker.context import Context

INIT_PRODUCER_ID = 22

#: What `handle` returns: a response, one that comes later, or none. The request that it is given,
#: and the response, are those of its API; only its own signature can say so.
Answer = Message | None | Future[Any] | Coroutine[Any, Any, Message | None]
Handler = Callable[["Context", Any, int], Answer]
HandlerOfMany = Callable[["Context", list[Any], int], list[Answer]]


@cache
def modules() -> dict[int, str]:
    """API key → module name, of the APIs this broker answers."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return {int(name[1:3]): name for name in names if name[0] == "k" and name[1:3].isdigit()}


def versions(settings: Mapping[str, Value]) -> dict[int, range]:
    """API key → the versions this broker tells clients of."""
    told = {key: ADVERTISED[key] for key in sorted(modules()) if key in ADVERTISED}
    if settings["transaction.two.phase.commit.enable"]:
        told[INIT_PRODUCER_ID] = range(0, 7)  # KIP-939's version 6, not stable in Kafka 4.3
    return told


@cache
def module(api_key: int) -> ModuleType:
    """The module that answers an API, imported."""
    found = import_module(f"{__name__}.{modules()[api_key]}")
    assert api_key == found.API_KEY
    return found


def handler(api_key: int) -> Handler:
    handle: Handler = module(api_key).handle
    return handle


def handler_of_many(api_key: int) -> HandlerOfMany | None:
    return getattr(module(api_key), "handle_many", None)
