"""The administrator's client: topics, groups, transactions and access rules of any Kafka cluster.

async with Admin("localhost:9092") as admin:
    await admin.create_topics([NewTopic("orders", partitions=6)])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from semel.client.admin.acls import AclAdministration
from semel.client.admin.groups import GroupAdministration
from semel.client.admin.quotas import QuotaAdministration
from semel.client.admin.topics import TopicAdministration
from semel.client.admin.transactions import TransactionAdministration
from semel.client.admin.users import UserAdministration
from semel.client.cluster import Cluster
from semel.client.lifetime import Lifetime
from semel.client.settings import ClientSettings, Servers

if TYPE_CHECKING:
    from semel.client.settings.keywords import ClientKeywords


class Admin(
    TopicAdministration,
    GroupAdministration,
    TransactionAdministration,
    UserAdministration,
    QuotaAdministration,
    AclAdministration,
    Lifetime,
):
    """Looks at and changes topics, groups, transactions, users, quotas and access rules."""

    settings: ClientSettings
    """All settings as they are in force."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ClientKeywords],
    ) -> None:
        """All settings of `ClientSettings` are keywords. A dict in the names of Java or librdkafka
        does as well, in place of the address or as `settings`; keywords win over it.
        """
        self.settings = ClientSettings.of(bootstrap_servers, settings, **given)

    async def start(self) -> None:
        """Connects. A `with` block does it too."""
        if self._is_started():
            return
        self._connected = Cluster(self.settings, creates_topics=False)
        try:
            await self._connected.refresh()
        except BaseException:
            await self._connected.close()
            raise
        self._settle_here()

    async def close(self) -> None:
        """Disconnects."""
        if self._is_started():
            self._leave()
            await self._connected.close()

    @property
    def _cluster(self) -> Cluster:  # type: ignore[override]
        """All that an administrator does, it asks of the cluster."""
        self._need_started()
        return self._connected
