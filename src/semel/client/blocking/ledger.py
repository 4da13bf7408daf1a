"""The blocking ledger. Made from the asyncio one by `make generated`: change that."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from semel.client.blocking.loop import inside, run
from semel.client.ledger import Ledger as AsyncioLedger
from semel.client.machines.ledger import LEDGER_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Unpack

    from semel.client.blocking.producer import Producer
    from semel.client.machines.ledger import LedgerEntry
    from semel.client.settings import Servers
    from semel.client.settings.keywords import ClientKeywords


class Ledger:
    """Which numbers each application has committed. It connects by itself when it is asked."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        topic: str = LEDGER_TOPIC,
        timeout_ms: float = 60000,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ClientKeywords],
    ) -> None:
        """All settings of `ClientSettings` are keywords. A dict in the names of Java or librdkafka
        does as well, in place of the address or as `settings`; keywords win over it."""
        self._client = AsyncioLedger(
            bootstrap_servers, topic=topic, timeout_ms=timeout_ms, settings=settings, **given
        )

    def entries(self) -> dict[str, LedgerEntry]:
        """The last committed entry of every application.

        Reads up to the end of the log as it is now, and waits for transactions that are open
        there: one of another application must not hide our last commit.
        """
        return run(self._client.entries())

    def last(self, application: str) -> int | None:
        """The last number that the application committed."""
        return run(self._client.last(application))

    def record(self, producer: Producer, application: str, number: int, note: Any = None) -> None:
        """Writes the number within the producer's open transaction."""
        run(self._client.record(producer._client, application, number, note))

    @contextmanager
    def once(
        self, producer: Producer, application: str, number: int, note: Any = None
    ) -> Iterator[bool]:
        """A transaction for this number; False where it was committed before: do nothing then."""
        with inside(self._client.once(producer._client, application, number, note)) as value:
            yield value
