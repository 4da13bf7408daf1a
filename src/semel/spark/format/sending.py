"""The batches of all tasks into one open transaction, over several connections at once.

Each partition belongs to one sender, so that its batches go out in order and their sequences are
known without asking anybody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from semel.errors import SemelError
from semel.spark.format.messages import TaskMessage
from semel.spark.kafka.settings import SparkSettings
from semel.spark.kafka.transactions import Lent
from semel.spark.sink.claims import Grant, Target
from semel.spark.sink.encoding import cluster_of
from semel.spark.sink.sending import BatchQueue, BatchSender, Deferred, Packed
from semel.spark.sink.transaction import RunAgain
from semel.wire.compression import Compression

_SENDERS = 4
# Below this a second connection costs more than it gains.
_WORTH_A_SENDER = 4 << 20
_TIMEOUT_S = 120.0
_SEQUENCES = 1 << 31

Item = Packed | Deferred


class OwnPartitions:
    """Grants a sender every partition that is its own, and counts the sequences."""

    def __init__(self) -> None:
        self._sequences: Counter[Target] = Counter()

    def claim(
        self,
        released: Sequence[tuple[Target, int]],
        wanted: Sequence[tuple[int, str, Sequence[int]]],
    ) -> list[Grant]:
        grants = []
        for place, (rows, topic, (partition,)) in enumerate(wanted):
            target = (topic, partition)
            grants.append(Grant(place, target, self._sequences[target]))
            self._sequences[target] = (self._sequences[target] + rows) % _SEQUENCES
        return grants

    def fail(self, error: BaseException) -> None:
        """Whoever started the sender finds the error in its queue."""

    def close(self) -> None:
        """Nothing is open."""


class TransactionSender:
    """Sends what tasks have encoded."""

    def __init__(self, settings: SparkSettings, codec: Compression) -> None:
        self._settings = settings
        self._codec = codec

    def send(
        self,
        messages: Iterable[TaskMessage],
        lent: Lent,
        before: Callable[[Iterable[Target]], None],
    ) -> int:
        """Returns the rows, all of them acknowledged. `before` hears of the partitions first."""
        items, sizes = self._placed(messages)
        before(items)
        queues = [
            self._queue(number, {target: items[target] for target in share})
            for number, share in enumerate(_shares(sizes))
        ]
        senders = [
            BatchSender(
                queue,
                cluster_of(self._settings, 1 + number),
                OwnPartitions(),
                lent,
                self._codec,
                _TIMEOUT_S,
            )
            for number, queue in enumerate(queues)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        for queue in queues:
            if queue.error is not None:
                raise _what_to_do(queue.error)
        rows = sum(queue.sent["rows"] for queue in queues)
        expected = sum(item.body.count for batches in items.values() for item in batches)
        assert rows == expected, f"{rows} rows were acknowledged of {expected}"
        return rows

    def _placed(
        self, messages: Iterable[TaskMessage]
    ) -> tuple[dict[Target, list[Item]], Counter[Target]]:
        """By partition, in the order of the tasks; what may go anywhere goes where least is."""
        items: dict[Target, list[Item]] = defaultdict(list)
        sizes: Counter[Target] = Counter()
        anywhere: list[tuple[int, str, Callable[[int], Item]]] = []
        for message in sorted(messages, key=lambda entry: entry.partition):
            for batch, load in message.loaders():
                if batch.partition is None:
                    anywhere.append(
                        (batch.size, batch.topic, lambda p, b=batch, made=load: made(b.body(p)))  # type: ignore[misc]
                    )
                    continue
                target = (batch.topic, batch.partition)
                items[target].append(load(batch.body(batch.partition)))
                sizes[target] += batch.size
        for size, topic, make in anywhere:
            count = cluster_of(self._settings).partitions(topic)
            target = min(((topic, p) for p in range(count)), key=lambda each: sizes[each])
            items[target].append(make(target[1]))
            sizes[target] += size
        return dict(items), sizes

    def _queue(self, number: int, items: dict[Target, list[Item]]) -> BatchQueue:
        cluster = cluster_of(self._settings, 1 + number)
        cluster.refresh({topic for topic, _ in items})
        queue = BatchQueue(cluster, self._codec, lambda slot: None)
        for batches in items.values():
            for item in batches:
                queue.put(item)
        queue.finish()
        return queue


def _shares(sizes: Counter[Target]) -> list[list[Target]]:
    """The partitions of each sender, about equal in bytes."""
    wanted = 1 + min(_SENDERS - 1, sum(sizes.values()) // _WORTH_A_SENDER)
    shares: list[list[Target]] = [[] for _ in range(min(wanted, len(sizes)))]
    loads = [0] * len(shares)
    for target, size in sizes.most_common():
        lightest = loads.index(min(loads))
        shares[lightest].append(target)
        loads[lightest] += size
    return shares


def _what_to_do(error: BaseException) -> BaseException:
    """What the broker says may be over with the next attempt; all else is what it is."""
    return RunAgain(str(error)) if isinstance(error, SemelError) else error
