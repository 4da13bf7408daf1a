"""What a handler is given: the broker's parts, who is asking, and whether they may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semel.broker.catalog import Catalog
    from semel.broker.server import Broker
    from semel.broker.settings import Settings
    from semel.net.connection import Connection

#: Kafka's name of the one resource of type CLUSTER.
CLUSTER_NAME = "kafka-cluster"


class Context:
    """One per connection and client id; reading the parts through the broker keeps them current."""

    __slots__ = ("broker", "client_id", "client_name", "connection", "principal")

    def __init__(
        self, broker: Broker, connection: Connection, client_id: str | None, client_name: bytearray
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.client_id = client_id
        self.client_name = client_name  # as it stands in requests, to know it again
        self.principal = "User:ANONYMOUS"

    @property
    def settings(self) -> Settings:
        return self.broker.settings

    @property
    def catalog(self) -> Catalog:
        return self.broker.catalog

    @property
    def partitions(self) -> Any:
        return self.broker.partitions

    @property
    def transactions(self) -> Any:
        return self.broker.transactions

    @property
    def groups(self) -> Any:
        return self.broker.groups

    def may(self, operation: str, resource_type: str, name: str) -> bool:
        """Whether the client may do this: the one place to ask. Without rules, all may."""
        access = self.broker.access
        return access is None or access.may(self, operation, resource_type, name)

    def now_ms(self) -> int:
        return self.broker.now_ms()
