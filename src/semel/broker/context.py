"""What a handler is given: the broker's parts, who is asking, and whether they may."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Catalog
    from semel.broker.coordinators.groups import Groups
    from semel.broker.coordinators.transactions import Transactions
    from semel.broker.partitions.partitions import Partitions
    from semel.broker.server import Broker
    from semel.broker.settings.settings import Settings
    from semel.core.access.principals import KafkaPrincipal
    from semel.net.connection import Connection

#: Kafka's name of the one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"
#: Where a client's name stands in a request: behind key, version and correlation id.
NAME_AT = 8


class Access(Protocol):
    """Who may do what."""

    def may(self, ctx: Context, operation: str, resource_type: str, name: str) -> bool: ...


class Context:
    """One per connection and client id. The broker's parts are looked up once, the coordinators
    when first asked for, for that starts them.

    `ctx.may("WRITE", "TRANSACTIONAL_ID", "a")` is the one place where access is asked: operation
    and resource type are Kafka's, in capitals; the one of type CLUSTER is called `kafka-cluster`.
    """

    __slots__ = (
        "__dict__",  # of the coordinators
        "body_at",
        "broker",
        "catalog",
        "client_id",
        "client_name",
        "connection",
        "may",
        "now_ms",
        "partitions",
        "principal",
        "settings",
    )

    def __init__(
        self, broker: Broker, connection: Connection, client_id: str | None, client_name: bytes
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.client_id = client_id
        self.client_name = client_name  # as it stands in requests, to know it again …
        self.body_at = NAME_AT + len(client_name)  # … and what follows it
        self.principal: KafkaPrincipal = connection.principal
        self.settings: Settings = broker.settings
        self.catalog: Catalog = broker.catalog
        self.partitions: Partitions = broker.partitions
        self.now_ms: Callable[[], int] = broker.now_ms
        #: Whether the client may do this (operation, resource type, name): the one place to ask.
        self.may: Callable[[str, str, str], bool] = (
            _all_may if broker.access is None else partial(broker.access.may, self)
        )

    @cached_property
    def transactions(self) -> Transactions:
        return self.broker.transactions

    @cached_property
    def groups(self) -> Groups:
        return self.broker.groups


def _all_may(operation: str, resource_type: str, name: str) -> bool:
    """Without rules."""
    return True
