"""What a handler is given: the broker's parts, who is asking, and whether they may."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Catalog
    from semel.broker.server import Broker
    from semel.broker.settings.settings import Settings
    from semel.net.connection import Connection

#: Kafka's name of the one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"
#: Where a client's name stands in a request: behind key, version and correlation id.
NAME_AT = 8


class Context:
    """One per connection and client id. The broker's parts are looked up once, the coordinators
    when first asked for, for that starts them.

    `ctx.may("WRITE", "TRANSACTIONAL_ID", "a")` is the one place where access is asked: operation
    and resource type are Kafka's, in capitals; the one of type CLUSTER is called `kafka-cluster`.
    """

    __slots__ = (
        "body_at",
        "broker",
        "catalog",
        "client_id",
        "client_name",
        "connection",
        "groups",
        "may",
        "now_ms",
        "partitions",
        "principal",
        "settings",
        "transactions",
    )

    transactions: Any
    groups: Any

    def __init__(
        self, broker: Broker, connection: Connection, client_id: str | None, client_name: bytes
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.client_id = client_id
        self.client_name = client_name  # as it stands in requests, to know it again …
        self.body_at = NAME_AT + len(client_name)  # … and what follows it
        self.principal = "User:ANONYMOUS"
        self.settings: Settings = broker.settings
        self.catalog: Catalog = broker.catalog
        self.partitions: Any = broker.partitions
        self.now_ms: Callable[[], int] = broker.now_ms
        #: Whether the client may do this (operation, resource type, name): the one place to ask.
        self.may: Callable[[str, str, str], bool] = (
            _all_may if broker.access is None else partial(broker.access.may, self)
        )

    def __getattr__(self, name: str) -> Any:
        """Called only for what is not there yet."""
        part = getattr(self.broker, name)
        setattr(self, name, part)
        return part


def _all_may(operation: str, resource_type: str, name: str) -> bool:
    """Without rules."""
    return True
