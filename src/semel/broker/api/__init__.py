"""One module per Kafka API, named by its key: listing this directory is reading the protocol table.

A module defines `API_KEY`, `VERSIONS` (what `semel.wire.messages.ADVERTISED` says) and
`handle(ctx, request, version)`. It is imported when the first request of its kind arrives.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from semel.wire.messages import ADVERTISED

Handler = Callable[[Any, Any, int], Any]


@cache
def modules() -> dict[int, str]:
    """API key → module name, of the APIs this broker answers."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return {int(name[1:3]): name for name in names if name[0] == "k" and name[1:3].isdigit()}


@cache
def versions() -> dict[int, range]:
    """API key → the versions this broker answers and tells clients of."""
    return {key: ADVERTISED[key] for key in sorted(modules()) if key in ADVERTISED}


@cache
def handler(api_key: int) -> Handler:
    """The function that answers an API; imports its module."""
    module = import_module(f"{__name__}.{modules()[api_key]}")
    assert api_key == module.API_KEY
    handle: Handler = module.handle
    return handle
