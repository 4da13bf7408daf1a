"""The blocking consumer. Made from the asyncio one by `make generated`: change that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from semel.client.blocking.loop import call, following, run
from semel.client.blocking.wrapping import Blocking
from semel.client.consumer.consumer import Consumer as AsyncioConsumer
from semel.client.consumer.records import K, V

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Self, Unpack

    from pyarrow import Table

    from semel.client.consumer.consumer import RebalanceListener
    from semel.client.consumer.records import ConsumerRecord
    from semel.client.machines.types import GroupMetadata, OffsetAndMetadata, TopicPartition
    from semel.client.metrics import ConsumerMetrics
    from semel.client.offsets import FoundOffset
    from semel.client.settings import ConsumerSettings, Servers
    from semel.client.settings.keywords import ConsumerKeywords


class Consumer(Blocking, Generic[K, V]):
    """Reads records: iterate it, or call `poll`, after `subscribe` or `assign`."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ConsumerKeywords],
    ) -> None:
        """All settings of `ConsumerSettings` are keywords. A dict in the names of Java or
        librdkafka does as well, in place of the address or as `settings`; keywords win over it.

        The deserializers make keys and values of bytes; a null key or value stays None, without
        asking them. One that raises makes `poll` raise a `DeserializationError`.
        """
        self._client = AsyncioConsumer(
            bootstrap_servers,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            settings=settings,
            **given,
        )

    def start(self) -> None:
        """Connects. A `with` block does it too."""
        run(self._client.start())

    def close(self) -> None:
        """Leaves the group and disconnects."""
        run(self._client.close())

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_revoked: RebalanceListener | None = None,
        on_lost: RebalanceListener | None = None,
        on_assigned: RebalanceListener | None = None,
    ) -> None:
        """Shares topics with the other members of the group: by name, or all that match a pattern.

        A pattern must match a topic's whole name; topics made later join in by themselves. Under
        group_protocol "consumer" the broker matches it (RE2's syntax), otherwise this client.
        The listeners (functions, or coroutine functions) run within `poll`: `on_revoked` before
        partitions are given up, so that it can still commit, `on_lost` where others may have them
        already (without one, `on_revoked`), `on_assigned` with those that are new.
        """
        call(
            lambda: self._client.subscribe(
                topics,
                pattern=pattern,
                on_revoked=on_revoked,
                on_lost=on_lost,
                on_assigned=on_assigned,
            )
        )

    def unsubscribe(self) -> None:
        """Leaves the group and forgets what was assigned. Committing before is the caller's."""
        run(self._client.unsubscribe())

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; of a pattern, those known to match it."""
        return call(lambda: self._client.subscription())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads exactly these partitions, whoever else does."""
        call(lambda: self._client.assign(partitions))

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read: assigned by hand, or by the group."""
        return call(lambda: self._client.assignment())

    def pause(self, *partitions: TopicPartition) -> None:
        """Polls give out nothing of these until `resume`; the group's membership goes on."""
        call(lambda: self._client.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Undoes `pause`."""
        call(lambda: self._client.resume(*partitions))

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return call(lambda: self._client.paused())

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> list[ConsumerRecord[K, V]]:
        """Records that are there, at most `max_poll_records`; waits up to the timeout for some.

        The positions are behind them afterwards. A member of a group has to call it at least every
        `max_poll_interval_ms`: rebalances happen within.
        """
        return run(self._client.poll(timeout_ms, max_records))

    def poll_table(self, timeout_ms: float = 0) -> Table:
        """What has been fetched, as an Arrow table; needs `semel[arrow]`.

        Columns: topic, partition, offset, timestamp, key, value, headers; deserializers are not
        asked. Rows are in order within each partition. Up to `fetch_max_bytes` from every broker;
        an empty table after the timeout.
        """
        return run(self._client.poll_table(timeout_ms))

    def __iter__(self) -> Self:
        """Record after record, until the consumer is closed. After an error it may go on."""
        return self

    def __next__(self) -> ConsumerRecord[K, V]:
        """The next record; waits for it. The position is behind it afterwards."""
        return following(self._client)

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record."""
        return run(self._client.position(partition, timeout_ms))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Reads on from this offset."""
        call(lambda: self._client.seek(partition, offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Reads on from the first record there is; of all assigned partitions, if none is named."""
        call(lambda: self._client.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Reads on behind the last record; of all assigned partitions, if none is named."""
        call(lambda: self._client.seek_to_end(*partitions))

    def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Reads on from what the group has committed, as after an aborted transaction; where it has
        not yet, from where `auto_offset_reset` says. Of all, if none is named."""
        run(self._client.seek_to_committed(*partitions))

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Stores where the group stands: the positions, or given offsets (of the *next* record)."""
        run(self._client.commit(offsets, timeout_ms))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed; partitions without anything are left out. Offsets that an
        open transaction is about to commit are waited for."""
        return run(self._client.committed(partitions, timeout_ms))

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the consumer stands in every partition it has a position in."""
        return call(lambda: self._client.positions())

    def group_metadata(self) -> GroupMetadata:
        """For `send_offsets_to_transaction`: who commits (KIP-447)."""
        return call(lambda: self._client.group_metadata())

    def topics(self) -> frozenset[str]:
        """The topics that this client may see, without the brokers' own."""
        return run(self._client.topics())

    def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions."""
        return run(self._client.partitions_for(topic))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offsets there are."""
        return run(self._client.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The last stable offsets with read_committed, the high watermarks otherwise."""
        return run(self._client.end_offsets(partitions))

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset]:
        """The first offset at or after each timestamp; partitions without one are left out."""
        return run(self._client.offsets_for_times(times))

    def lag(self, partition: TopicPartition) -> int | None:
        """Offsets behind the end, or None while that is not known. The end is the last stable
        offset, if only committed records are read."""
        return call(lambda: self._client.lag(partition))

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The offset behind the last record that is safe, as of the last fetch."""
        return call(lambda: self._client.high_watermark(partition))

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The offset up to which all transactions are decided, as of the last fetch."""
        return call(lambda: self._client.last_stable_offset(partition))

    def metrics(self) -> ConsumerMetrics:
        """What this consumer has done since it was started; see `ConsumerMetrics`."""
        return call(lambda: self._client.metrics())

    @property
    def settings(self) -> ConsumerSettings:
        """All settings as they are in force."""
        return self._client.settings

    @classmethod
    def _of(cls, client: AsyncioConsumer[K, V]) -> Self:
        made = cls.__new__(cls)
        made._client = client
        return made
