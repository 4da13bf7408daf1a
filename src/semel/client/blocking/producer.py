"""The blocking producer. Made from the asyncio one by `make generated`: change that."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic

from semel.client.blocking.loop import call, inside, run
from semel.client.blocking.wrapping import Blocking, Delivery
from semel.client.producer.producer import Producer as AsyncioProducer
from semel.client.producer.serializing import K, V

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Self, Unpack

    from semel.client.machines.records import Headers
    from semel.client.machines.transactions import State
    from semel.client.machines.types import (
        GroupMetadata,
        OffsetAndMetadata,
        ProducerIdentity,
        TopicPartition,
    )
    from semel.client.metrics import ProducerMetrics
    from semel.client.producer.columnar_send import TableMetadata
    from semel.client.producer.deliveries import RecordMetadata
    from semel.client.settings import ProducerSettings, Servers
    from semel.client.settings.keywords import ProducerKeywords


class Producer(Blocking, Generic[K, V]):
    """Sends records; with a `transactional_id`, in transactions."""

    def __init__(
        self,
        bootstrap_servers: Servers | Mapping[str, Any] | None = None,
        *,
        key_serializer: Callable[[K], bytes | None] | None = None,
        value_serializer: Callable[[V], bytes | None] | None = None,
        settings: Mapping[str, Any] | None = None,
        **given: Unpack[ProducerKeywords],
    ) -> None:
        """All settings of `ProducerSettings` are keywords. A dict in the names of Java or
        librdkafka does as well, in place of the address or as `settings`; keywords win over it.

        The serializers make bytes of keys and values; None stays null, without asking them.
        """
        self._client = AsyncioProducer(
            bootstrap_servers,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            settings=settings,
            **given,
        )

    def start(self) -> None:
        """Connects. A `with` block does it too."""
        run(self._client.start())

    def close(self, timeout_ms: float | None = None) -> None:
        """Sends what is buffered, aborts an open transaction, and disconnects."""
        run(self._client.close(timeout_ms))

    def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Delivery[RecordMetadata]:
        """Buffers a record. Waits only for room in the buffer and for a new topic's metadata.

        Without a `partition` the key chooses it, as Java's client does; without a key, one after
        another is filled. `headers` are a mapping or (name, bytes) pairs, `timestamp_ms` is now if
        not given. What is returned need not be waited for: see `Delivery`. Whatever this raises,
        or if it is cancelled, the record was not sent.
        """
        return Delivery(
            run(
                self._client.send(
                    topic,
                    value,
                    key,
                    partition=partition,
                    headers=headers,
                    timestamp_ms=timestamp_ms,
                )
            )
        )

    def send_and_wait(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Sends one record at once and waits until it is written. Takes what `send` takes."""
        return run(
            self._client.send_and_wait(
                topic, value, key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
            )
        )

    def send_many(self, topic: str, records: Iterable[tuple[V | None, K | None]]) -> None:
        """Buffers many records, (value, key) pairs: the key may be None."""
        run(self._client.send_many(topic, records))

    def send_table(self, topic: str | None, table: Any) -> Delivery[TableMetadata]:
        """Buffers the rows of an Arrow table; needs `semel[arrow]`.

        Columns, all optional: key, value (binary or string; serializers are not asked), headers,
        timestamp, partition, and topic where none is named. Rows are placed as single records are.
        A table that cannot be sent raises before its first row is. Waits for room in the buffer;
        cancelled there, it is sent in part, and its transaction can only be aborted.
        """
        return Delivery(run(self._client.send_table(topic, table)))

    def flush(self, timeout_ms: float | None = None) -> None:
        """Waits until everything sent so far is written or has failed."""
        run(self._client.flush(timeout_ms))

    def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions."""
        return run(self._client.partitions_for(topic))

    def init_transactions(self, timeout_ms: float | None = None) -> None:
        """Fences older producers of this transactional id and completes what they left open."""
        run(self._client.init_transactions(timeout_ms))

    def begin_transaction(self) -> None:
        """Begins a transaction: what is sent from now on is seen whole, or not at all."""
        run(self._client.begin_transaction())

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata | str,
        timeout_ms: float | None = None,
    ) -> None:
        """Makes a group's progress part of the transaction. Offsets are those to read *next*.

        With `consumer.group_metadata()` a member that the group has left behind is refused
        (KIP-447); a group's id alone is for groups without members.
        """
        run(self._client.send_offsets_to_transaction(offsets, group_metadata, timeout_ms))

    def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """Writes what is buffered, then makes all of the transaction visible at once."""
        run(self._client.commit_transaction(timeout_ms))

    def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """Drops what is buffered and makes what was written invisible for committed readers."""
        run(self._client.abort_transaction(timeout_ms))

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction around a block: committed at its end, aborted if it raises."""
        with inside(self._client.transaction()):
            yield self

    @property
    def identity(self) -> ProducerIdentity:
        """The producer id and epoch in use."""
        return self._client.identity

    @property
    def state(self) -> State:
        """Where the producer stands in its transaction."""
        return self._client.state

    def metrics(self) -> ProducerMetrics:
        """What this producer has done since it was started; see `ProducerMetrics`."""
        return call(lambda: self._client.metrics())

    @property
    def settings(self) -> ProducerSettings:
        """All settings as they are in force."""
        return self._client.settings

    @classmethod
    def _of(cls, client: AsyncioProducer[K, V]) -> Self:
        made = cls.__new__(cls)
        made._client = client
        return made
