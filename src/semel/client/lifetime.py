"""`async with` for clients: what it opens, it closes."""

from types import TracebackType
from typing import Self


class Lifetime:
    async def start(self) -> None:
        """Connects. A `with` block does it too."""

    async def close(self) -> None:
        """Disconnects."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
