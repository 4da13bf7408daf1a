"""Quotas of users, client ids and addresses."""

from collections.abc import Mapping
from dataclasses import dataclass

from semel.client.cluster import Cluster
from semel.client.errors import error_for
from semel.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from semel.wire.messages.describe_client_quotas import DescribeClientQuotasRequest


@dataclass(frozen=True, slots=True)
class Quota:
    """What somebody may use, such as `producer_byte_rate`, in all per second.

    `entity` says whose: types (`user`, `client-id`, `ip`) and names. The name None is the default
    of all that have no quota of their own.
    """

    entity: Mapping[str, str | None]
    name: str
    value: float


class QuotaAdministration:
    _cluster: Cluster

    async def list_quotas(self) -> list[Quota]:
        """All quotas that are set."""
        answer = await self._cluster.ask(DescribeClientQuotasRequest())
        if answer.error_code:
            raise error_for(answer.error_code, "quotas", why=answer.error_message)
        return [
            Quota(
                {part.entity_type: part.entity_name for part in entry.entity},
                one.key,
                one.value,
            )
            for entry in answer.entries or ()
            for one in entry.values
        ]

    async def alter_quotas(
        self, entity: Mapping[str, str | None], changes: Mapping[str, float | None]
    ) -> None:
        """Sets quotas of an entity; None removes one."""
        entry = AlterClientQuotasRequest.EntryData(
            entity=[
                AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name)
                for kind, name in entity.items()
            ],
            ops=[
                AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in changes.items()
            ],
        )
        answer = await self._cluster.ask(AlterClientQuotasRequest(entries=[entry]))
        result = answer.entries[0]
        if result.error_code:
            raise error_for(result.error_code, "quotas", why=result.error_message)
