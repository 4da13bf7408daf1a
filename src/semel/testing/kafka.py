"""A broker for tests, with all that a test wants to ask it and do to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from semel.broker.server import Broker


class Kafka:
    """A real broker in this process, on a free port, with its own temporary data.

    `settings` have Kafka's names: `{"num.partitions": 3}`.
    """

    def __init__(self, *, settings: Mapping[str, object] | None = None) -> None:
        self._broker = Broker(settings=settings)

    @property
    def bootstrap_servers(self) -> str:
        """What any Kafka client is given to connect to."""
        return self._broker.bootstrap_servers

    def __enter__(self) -> Self:
        self._broker.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._broker.__exit__(*problem)
