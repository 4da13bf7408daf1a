"""How keys and values become bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # What the serializers take; without one, bytes are checked when they are sent.
    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:  # defaults of type variables came with Python 3.13
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")


class Serialized(bytes):
    """A key or value that goes as it is: the producer's serializer is not asked."""


def serialized(serializer: Callable[[Any], bytes | None] | None, given: Any) -> Any:
    """None is null, whatever the serializer would make of it: a tombstone, or no key."""
    if serializer is None or given is None or type(given) is Serialized:
        return given
    return serializer(given)
