"""The administrator's client: topics, groups and transactions of any Kafka cluster.

async with Admin("localhost:9092") as admin:
    await admin.create_topics([NewTopic("orders", partitions=6)])
"""

from collections.abc import Mapping
from typing import Any

from semel.client.admin.groups import GroupAdministration
from semel.client.admin.topics import TopicAdministration
from semel.client.admin.transactions import TransactionAdministration
from semel.client.cluster import Cluster
from semel.client.lifetime import Lifetime
from semel.client.settings import ClientSettings


class Admin(TopicAdministration, GroupAdministration, TransactionAdministration, Lifetime):
    def __init__(
        self,
        bootstrap_servers: str | list[str] | Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **given: Any,
    ) -> None:
        self.settings = ClientSettings.of(bootstrap_servers, settings, **given)

    async def start(self) -> None:
        self._cluster = Cluster(self.settings, creates_topics=False)
        try:
            await self._cluster.refresh()
        except BaseException:
            await self._cluster.close()
            raise

    async def close(self) -> None:
        await self._cluster.close()
