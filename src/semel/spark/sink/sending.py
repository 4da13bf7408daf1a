"""A task's full batches on their way out: a queue per partition, drained by sender threads.

A sender takes the ready batches of one leader, packs them, claims their partitions from the
driver, writes whatever was granted in one Produce request, and gives the partitions back together
with its next claim, or at once if nothing else is ready.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from semel.client.errors import error_for
from semel.columnar.encode import Body, batch_header
from semel.errors import SemelError, UnreachableError
from semel.spark.kafka.client import BlockingCluster
from semel.spark.kafka.transactions import Lent, highest_version
from semel.spark.sink.claims import Grant, Target
from semel.wire.compression import Buffer, Compression, compress
from semel.wire.errors import ErrorCode
from semel.wire.frames import Pieces
from semel.wire.messages.produce import ProduceRequest

_ALL_REPLICAS = -1
# One request's worth: more partitions at once only make others wait for them.
_BATCHES_AT_ONCE = 64
# Of the partitions that would do for rows without a key, how many are offered to the driver.
_CANDIDATES = 64
_ANYWHERE_AT_ONCE = 4
_RETRY_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Packed:
    """A body compressed: what is worth doing before its sequence is known."""

    body: Body
    records: Buffer


@dataclass(frozen=True, slots=True)
class Deferred:
    """A body that lies compressed elsewhere, and is fetched when its turn comes."""

    body: Body
    load: Callable[[], Buffer]


class PartitionGrants(Protocol):
    """Who says which partitions a sender may write to, and from which sequence on."""

    def claim(
        self,
        released: Sequence[tuple[Target, int]],
        wanted: Sequence[tuple[int, str, Sequence[int]]],
    ) -> list[Grant]: ...

    def fail(self, error: BaseException) -> None: ...

    def close(self) -> None: ...


class BatchQueue:
    """Shared by the encoding thread, which fills it, and the senders, which empty it."""

    def __init__(
        self, cluster: BlockingCluster, codec: Compression, done: Callable[[int], None]
    ) -> None:
        self.error: BaseException | None = None
        self.sent: Counter[str] = Counter()
        self._cluster = cluster
        self._codec = codec
        self._done = done
        self._changed = threading.Condition()
        self._queues: dict[tuple[str, int | None], deque[Body | Packed | Deferred]] = {}
        self._taken: set[tuple[str, int | None]] = set()
        self._out = 0
        self._finished = False

    def put(self, item: Body | Packed | Deferred) -> None:
        body = item if isinstance(item, Body) else item.body
        with self._changed:
            self._raise()
            self._queues.setdefault((body.topic, body.partition), deque()).append(item)
            self._changed.notify_all()

    def finish(self) -> None:
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def take(self, patient: bool) -> list[Packed] | None:
        """Ready batches of one leader, one per partition; [] if not patient, None at the end."""
        with self._changed:
            while True:
                self._raise()
                heads = [head for key in self._ready() for head in self._pop(key)]
                if heads or not patient:
                    break
                if self._finished and not self._queues and not self._out:
                    return None
                self._changed.wait()
            self._out += len(heads)
        return [self._pack(head) for head in heads]

    def settle(self, packed: list[Packed], written: dict[int, int]) -> None:
        """Put back what was not granted; drop what was written (by its place, with its size)."""
        with self._changed:
            self._out -= len(packed)
            for place in reversed(range(len(packed))):
                body = packed[place].body
                key = (body.topic, body.partition)
                self._taken.discard(key)
                if place not in written:
                    self._queues.setdefault(key, deque()).appendleft(packed[place])
                    continue
                self.sent.update(rows=body.count, bytes=written[place], batches=1)
                self._done(body.slot)
            self._changed.notify_all()

    def candidates(self, body: Body) -> list[int]:
        """The partitions that would do for a batch."""
        if body.partition is not None:
            return [body.partition]
        count = self._cluster.partitions(body.topic)
        return random.sample(range(count), min(count, _CANDIDATES))

    def _ready(self) -> list[tuple[str, int | None]]:
        by_leader: dict[int, list[tuple[str, int | None]]] = {}
        anywhere = []
        for topic, partition in self._queues:
            if (topic, partition) in self._taken:
                continue
            if partition is None:
                anywhere.append((topic, partition))
                continue
            leader = self._cluster.leader_id(topic, partition)
            by_leader.setdefault(leader, []).append((topic, partition))
        largest = max(by_leader.values(), key=len, default=[])
        return [*anywhere, *largest][:_BATCHES_AT_ONCE]

    def _pop(self, key: tuple[str, int | None]) -> list[Body | Packed | Deferred]:
        """A partition's batches go out one after the other; rows for anywhere have no order."""
        queue = self._queues[key]
        if key[1] is None:
            heads = [queue.popleft() for _ in range(min(len(queue), _ANYWHERE_AT_ONCE))]
        else:
            heads = [queue.popleft()]
            self._taken.add(key)
        if not queue:
            del self._queues[key]
        return heads

    def _pack(self, head: Body | Packed | Deferred) -> Packed:
        if isinstance(head, Packed):
            return head
        if isinstance(head, Deferred):
            return Packed(head.body, head.load())
        return Packed(head, compress(self._codec, head.records))

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error


class BatchSender(threading.Thread):
    """Claims, writes, gives back, until the queue is empty and finished."""

    def __init__(
        self,
        queue: BatchQueue,
        cluster: BlockingCluster,
        claims: PartitionGrants,
        lent: Lent,
        codec: Compression,
        timeout_s: float,
    ) -> None:
        super().__init__(name="semel-sender", daemon=True)
        self._queue = queue
        self._cluster = cluster
        self._claims = claims
        self._lent = lent
        self._codec = codec
        self._timeout_s = timeout_s

    def run(self) -> None:
        try:
            self._drain()
        except BaseException as error:
            self._queue.fail(error)
            self._claims.fail(error)
        finally:
            # Closed while it holds partitions, it makes the driver abort; that is meant.
            self._claims.close()

    def _drain(self) -> None:
        held: list[tuple[Target, int]] = []
        while True:
            packed = self._queue.take(patient=not held)
            if packed is None:
                return
            if not packed:
                self._claims.claim(held, [])
                held = []
                continue
            wanted = [
                (item.body.count, item.body.topic, self._queue.candidates(item.body))
                for item in packed
            ]
            grants = self._claims.claim(held, wanted)
            written = self._write(packed, grants)
            held = [(grant.target, packed[grant.want].body.count) for grant in grants]
            self._queue.settle(packed, written)

    def _write(self, packed: list[Packed], grants: list[Grant]) -> dict[int, int]:
        """Write what was granted and wait for every acknowledgement."""
        batches = {grant.target: self._seal(packed[grant.want], grant) for grant in grants}
        sizes = {grant.want: batches[grant.target].size for grant in grants}
        deadline = time.monotonic() + self._timeout_s
        while batches:
            try:
                for target in self._produce(batches):
                    del batches[target]
                reason = "retriable errors"
            except OSError as error:
                reason = str(error)
            if batches:
                if time.monotonic() > deadline:
                    raise UnreachableError(f"writing to {sorted(batches)} for too long: {reason}")
                # The same bytes with the same sequence go out again: the broker knows a repetition.
                time.sleep(_RETRY_PAUSE_S)
                self._refresh({topic for topic, _ in batches})
        return sizes

    def _refresh(self, topics: set[str]) -> None:
        try:
            self._cluster.refresh(topics)
        except (OSError, SemelError):
            self._queue.sent["refresh_failures"] += 1

    def _seal(self, item: Packed, grant: Grant) -> Pieces:
        header = batch_header(
            records=item.records,
            count=item.body.count,
            base_ms=item.body.base_ms,
            max_ms=item.body.max_ms,
            producer_id=self._lent.producer_id,
            epoch=self._lent.epoch,
            sequence=grant.sequence,
            codec=self._codec,
        )
        return Pieces(header, item.records)

    def _produce(self, batches: dict[Target, Pieces]) -> list[Target]:
        """One request to each leader; returns what was acknowledged, leaves out what may be
        retried.
        """
        by_leader: dict[int, list[Target]] = {}
        for topic, partition in batches:
            leader = self._cluster.leader_id(topic, partition)
            by_leader.setdefault(leader, []).append((topic, partition))
        acknowledged: list[Target] = []
        for leader, targets in by_leader.items():
            answer = self._cluster.node(leader).call(
                self._request({target: batches[target] for target in targets}),
                highest_version(self._lent.protocol, 0),
            )
            self._queue.sent["requests"] += 1
            for topic in answer.responses:
                for entry in topic.partition_responses:
                    if _is_written(topic.name, entry):
                        acknowledged.append((topic.name, entry.index))
        return acknowledged

    def _request(self, batches: dict[Target, Pieces]) -> ProduceRequest:
        topics: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        for (topic, partition), records in batches.items():
            data = ProduceRequest.PartitionProduceData(index=partition, records=records)
            topics.setdefault(topic, []).append(data)
        return ProduceRequest(
            transactional_id=self._lent.transactional_id,
            acks=_ALL_REPLICAS,
            timeout_ms=30_000,
            topic_data=[
                ProduceRequest.TopicProduceData(name=name, partition_data=data)
                for name, data in topics.items()
            ],
        )


def _is_written(topic: str, entry: object) -> bool:
    code = ErrorCode.of(entry.error_code)  # type: ignore[attr-defined]
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return True
    if code.retriable:
        return False
    raise error_for(code, f"writing to {topic}-{entry.index}")  # type: ignore[attr-defined]
