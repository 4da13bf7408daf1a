"""The blocking admin. Made from the asyncio one by `make generated`: change that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semel.client.admin.admin import Admin as AsyncioAdmin
from semel.client.admin.transactions import DEFAULT_MAX_TRANSACTION_MS
from semel.client.blocking.loop import run
from semel.client.blocking.wrapping import Blocking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Unpack

    from semel.client.admin.acls import Acl, AclFilter
    from semel.client.admin.groups import GroupDescription, GroupListing, Lag
    from semel.client.admin.quotas import Quota
    from semel.client.admin.topics import ClusterInfo, NewTopic
    from semel.client.admin.transactions import (
        ActiveProducer,
        TransactionDescription,
        TransactionListing,
    )
    from semel.client.admin.users import ScramUser
    from semel.client.machines.metadata import TopicMetadata
    from semel.client.machines.types import OffsetAndMetadata, ProducerIdentity, TopicPartition
    from semel.client.offsets import FoundOffset
    from semel.client.settings import ClientSettings, Servers
    from semel.client.settings.clients import IsolationLevel
    from semel.client.settings.keywords import ClientKeywords


class Admin(Blocking):
    """Looks at and changes topics, groups, transactions, users, quotas and access rules."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ClientKeywords],
    ) -> None:
        """All settings of `ClientSettings` are keywords. A dict in the names of Java or librdkafka
        does as well, in place of the address or as `settings`; keywords win over it."""
        self._client = AsyncioAdmin(bootstrap_servers, settings=settings, **given)

    def start(self) -> None:
        """Connects. A `with` block does it too."""
        run(self._client.start())

    def close(self) -> None:
        """Disconnects."""
        run(self._client.close())

    def describe_cluster(self) -> ClusterInfo:
        """The cluster's id, its controller and its brokers."""
        return run(self._client.describe_cluster())

    def create_topics(self, topics: Iterable[NewTopic | str], *, exist_ok: bool = False) -> None:
        """All of them, or an error that names the first that could not be created."""
        run(self._client.create_topics(topics, exist_ok=exist_ok))

    def delete_topics(self, names: Iterable[str], *, missing_ok: bool = False) -> None:
        """All of them, or an error that names the first that could not be deleted."""
        run(self._client.delete_topics(names, missing_ok=missing_ok))

    def create_partitions(self, counts: Mapping[str, int]) -> None:
        """Grows topics to these numbers of partitions."""
        run(self._client.create_partitions(counts))

    def list_topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics; the brokers' own too, if asked for."""
        return run(self._client.list_topics(internal=internal))

    def describe_topics(self, names: Iterable[str] | None = None) -> dict[str, TopicMetadata]:
        """Partitions and leaders of these topics, or of all."""
        return run(self._client.describe_topics(names))

    def describe_configs(
        self, topic: str | None = None, *, broker: int | None = None, only_changed: bool = False
    ) -> dict[str, str | None]:
        """The configs of a topic, or of a broker by its id; `only_changed` leaves defaults out."""
        return run(self._client.describe_configs(topic, broker=broker, only_changed=only_changed))

    def alter_configs(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Sets configs of a topic; None takes one back to its default."""
        run(self._client.alter_configs(topic, changes))

    def list_offsets(
        self,
        at: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> dict[TopicPartition, FoundOffset]:
        """Offsets by timestamp; −1 is the end, −2 the beginning. The end is the last stable offset
        with `read_committed`, else the high watermark."""
        return run(self._client.list_offsets(at, isolation_level=isolation_level))

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Deletes everything below these offsets."""
        run(self._client.delete_records(before))

    def list_groups(self) -> list[GroupListing]:
        """All groups of all brokers."""
        return run(self._client.list_groups())

    def describe_group(self, group_id: str) -> GroupDescription:
        """Its state, and who its members are."""
        return run(self._client.describe_group(group_id))

    def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Deletes groups that have no members, with all that they have committed."""
        run(self._client.delete_groups(group_ids))

    def group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Everything that the group has committed."""
        return run(self._client.group_offsets(group_id))

    def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Moves a group that has no members."""
        run(self._client.alter_group_offsets(group_id, offsets))

    def group_lag(self, group_id: str) -> list[Lag]:
        """How far the group is behind, for each partition that it has committed in."""
        return run(self._client.group_lag(group_id))

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Of all coordinators; `pattern` is a regular expression for the transactional id."""
        return run(
            self._client.list_transactions(
                states=states,
                producer_ids=producer_ids,
                longer_than_ms=longer_than_ms,
                pattern=pattern,
            )
        )

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """What its coordinator knows of a transactional id."""
        return run(self._client.describe_transaction(transactional_id))

    def describe_producers(self, partitions: Iterable[TopicPartition]) -> list[ActiveProducer]:
        """The producers that the leaders of partitions remember, with their open transactions."""
        return run(self._client.describe_producers(partitions))

    def find_hanging(
        self,
        partitions: Iterable[TopicPartition],
        *,
        open_longer_than_ms: int = DEFAULT_MAX_TRANSACTION_MS,
        now_ms: int | None = None,
    ) -> list[ActiveProducer]:
        """Open transactions in partitions that no coordinator will ever end, as of now if no time
        is given."""
        return run(
            self._client.find_hanging(
                partitions, open_longer_than_ms=open_longer_than_ms, now_ms=now_ms
            )
        )

    def abort_transaction(self, hanging: ActiveProducer) -> None:
        """Writes the abort marker that a hanging transaction waits for, straight to the leader."""
        run(self._client.abort_transaction(hanging))

    def fence_producer(self, transactional_id: str) -> ProducerIdentity:
        """Takes a transactional id over: its producer is fenced, its open transaction aborted."""
        return run(self._client.fence_producer(transactional_id))

    def list_users(self) -> list[ScramUser]:
        """All users that can log in by SCRAM."""
        return run(self._client.list_users())

    def set_password(
        self, user: str, password: str, *, mechanism: str | None = None, iterations: int = 0
    ) -> None:
        """Lets a user log in with this password, by one mechanism or by all. It makes the user."""
        run(self._client.set_password(user, password, mechanism=mechanism, iterations=iterations))

    def remove_user(self, user: str, *, mechanism: str | None = None) -> None:
        """Lets a user log in no more, by one mechanism or by any. Open connections stay."""
        run(self._client.remove_user(user, mechanism=mechanism))

    def list_quotas(self) -> list[Quota]:
        """All quotas that are set."""
        return run(self._client.list_quotas())

    def alter_quotas(
        self, entity: Mapping[str, str | None], changes: Mapping[str, float | None]
    ) -> None:
        """Sets quotas of an entity; None removes one."""
        run(self._client.alter_quotas(entity, changes))

    def create_acls(self, acls: Iterable[Acl]) -> None:
        """All of them, or an error that names the first that could not be made. One that is there
        already is fine."""
        run(self._client.create_acls(acls))

    def describe_acls(self, wanted: AclFilter | None = None) -> list[Acl]:
        """The rules that match; without a filter all."""
        return run(self._client.describe_acls(wanted))

    def delete_acls(self, wanted: Iterable[AclFilter]) -> list[Acl]:
        """Removes the rules that match one of the filters, and tells which they were."""
        return run(self._client.delete_acls(wanted))

    @property
    def settings(self) -> ClientSettings:
        """All settings as they are in force."""
        return self._client.settings
