"""What blocking clients share: `with`, and deliveries that can be waited for."""

from __future__ import annotations

from collections.abc import Awaitable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from semel.client.blocking.loop import run

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Blocking:
    """A client in a `with` block: what it opens, it closes."""

    def start(self) -> None:
        """Connects. A `with` block does it too."""

    def close(self) -> None:
        """Disconnects."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncDelivery(Awaitable[T_co], Protocol[T_co]):
    """A delivery of the asyncio client."""

    def done(self) -> bool: ...


class Delivery(Generic[T]):
    """A record or a table on its way.

    It need not be waited for: `flush` and `commit_transaction` wait for all of them, and a failure
    in a transaction makes the commit impossible.
    """

    def __init__(self, delivery: AsyncDelivery[T]) -> None:
        self._delivery = delivery

    def done(self) -> bool:
        """Whether it is written, or has failed."""
        return self._delivery.done()

    def result(self) -> T:
        """Waits until it is written, and says where; or raises why it failed."""

        async def wait() -> T:
            return await self._delivery

        return run(wait())
