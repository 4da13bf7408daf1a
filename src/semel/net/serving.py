"""Event loops on which a broker listens. Whoever blocks such a loop has stopped that broker."""

from asyncio import AbstractEventLoop
from weakref import WeakKeyDictionary

_listeners: WeakKeyDictionary[AbstractEventLoop, int] = WeakKeyDictionary()


def begin(loop: AbstractEventLoop) -> None:
    _listeners[loop] = _listeners.get(loop, 0) + 1


def end(loop: AbstractEventLoop) -> None:
    _listeners[loop] = _listeners.get(loop, 1) - 1


def has_broker(loop: AbstractEventLoop) -> bool:
    return _listeners.get(loop, 0) > 0
