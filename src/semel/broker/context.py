"""What a handler is given: the broker's parts, who is asking, and whether they may."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semel.broker.catalog.catalog import Catalog
    from semel.broker.coordinators.groups import Groups
    from semel.broker.coordinators.transactions import Transactions
    from semel.broker.partitions.partitions import Partitions
    from semel.broker.server import Broker
    from semel.broker.settings.settings import Settings
    from semel.core.access.principals import KafkaPrincipal
    from semel.core.access.quotas import Mutations
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
    A denial is told in the audit log, unless `may_quietly` asked: about what a client did not name
    itself. `may_any("WRITE", "TOPIC")` asks whether there may be such a topic at all.
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
        "may_any",
        "may_quietly",
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
        self.may: Callable[[str, str, str], bool] = _all_may
        self.may_quietly: Callable[[str, str, str], bool] = _all_may
        self.may_any: Callable[[str, str], bool] = _all_may_any
        if broker.access is not None:
            caller = broker.access.caller(str(self.principal), connection.host)
            if not caller.is_super_user:
                self.may = caller.may
                self.may_quietly = caller.may_quietly
                self.may_any = caller.may_any

    def mutations(self, is_strict: bool) -> Mutations | None:
        """The client's quota of topics made and deleted, if it has one."""
        if not self.catalog.quotas:
            return None
        return self.broker.throttling.mutations(self, is_strict)

    @cached_property
    def transactions(self) -> Transactions:
        return self.broker.transactions

    @cached_property
    def groups(self) -> Groups:
        return self.broker.groups


def _all_may(operation: str, resource_type: str, name: str) -> bool:
    """Without rules."""
    return True


def _all_may_any(operation: str, resource_type: str) -> bool:
    """Without rules."""
    return True
