"""Quotas: how much a client may use, and how long it waits when it used more. Pure.

The arithmetic is that of Kafka's SampledStat, Rate and TokenBucket; which quota counts for a client
is decided as by its DefaultQuotaCallback; how long it waits as by QuotaUtils.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCE, FETCH = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"

#: What of a client is remembered: clients choose their names, so it has to end somewhere. Kafka
#: forgets after an hour without use.
MOST_REMEMBERED = 10_000

Entity = frozenset[tuple[str, str | None]]
"""Types and names; the name None is the default of all that have no quota of their own."""


Key = tuple[str, Entity]
T = TypeVar("T")


class Windows(NamedTuple):
    """`quota.window.num` and `quota.window.size.seconds`."""

    number: int = 11
    size_ms: int = 1_000


class Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """Per second, over the last windows. It is never taken over less than all but one of them, so
    that a client that just began may use several seconds' worth at once."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        if not self._samples:
            self._samples.append(Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> Sample:
        """One more than the windows: the oldest overlaps the time that counts."""
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._samples):
            self._samples.append(Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def measure(self, now_ms: int) -> tuple[float, float]:
        """The rate, and the milliseconds that it is taken over."""
        windows = self._windows
        for sample in self._samples:
            if now_ms - sample.last_ms >= windows.number * windows.size_ms:
                sample.reset(now_ms)
        oldest_ms = min((sample.start_ms for sample in self._samples), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = windows.number - 1 - elapsed_ms // windows.size_ms
        if missing > 0:
            elapsed_ms += missing * windows.size_ms
        elapsed_ms = max(elapsed_ms, windows.size_ms)
        total = sum(sample.value for sample in self._samples)
        return total * 1_000 / elapsed_ms, elapsed_ms

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long to wait until the rate is within the limit again; 0 if it is."""
        rate, elapsed_ms = self.measure(now_ms)
        return round((rate - limit) / limit * elapsed_ms) if rate > limit else 0


class Tokens:
    """A bucket that fills at the quota's rate, and holds what comes in all windows (KIP-599)."""

    __slots__ = ("_filled_ms", "_left", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._left: float | None = None  # full
        self._filled_ms = 0

    def _fill(self, limit: float, now_ms: int) -> float:
        most = limit * self._windows.number * self._windows.size_ms / 1_000
        left = self._left
        if left is not None:
            left = min(most, left + limit * max(0, now_ms - self._filled_ms) / 1_000)
        self._left = most if left is None else left
        self._filled_ms = now_ms
        return self._left

    def record(self, value: float, limit: float, now_ms: int) -> None:
        self._left = self._fill(limit, now_ms) - value

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        left = self._fill(limit, now_ms)
        return round(-left / limit * 1_000) if left < 0 else 0


class QuotaBook:
    """What is set, by entity; `observers` hear of changes."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[str, float]] = {}
        self.observers: list[Callable[[], None]] = []

    def set(self, entity: Entity, key: str, value: float | None) -> None:
        quotas = self._quotas.setdefault(entity, {})
        if value is None:
            quotas.pop(key, None)
        else:
            quotas[key] = value
        if not quotas:
            del self._quotas[entity]
        for observer in self.observers:
            observer()

    def __iter__(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        return iter(self._quotas.items())

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def of(self, entity: Entity) -> Mapping[str, float]:
        return self._quotas.get(entity, {})

    def for_client(self, key: str, user: str, client_id: str) -> tuple[float, Entity] | None:
        """The limit that counts for a client, and who shares it."""
        for names in (
            ((USER, user), (CLIENT_ID, client_id)),
            ((USER, user), (CLIENT_ID, None)),
            ((USER, user),),
            ((USER, None), (CLIENT_ID, client_id)),
            ((USER, None), (CLIENT_ID, None)),
            ((USER, None),),
            ((CLIENT_ID, client_id),),
            ((CLIENT_ID, None),),
        ):
            limit = self._quotas.get(frozenset(names), {}).get(key)
            if limit is not None:
                own = {USER: user, CLIENT_ID: client_id}
                return limit, frozenset((kind, own[kind]) for kind, _ in names)
        return None

    def for_address(self, address: str) -> float | None:
        for name in (address, None):
            limit = self._quotas.get(frozenset({(IP, name)}), {}).get(CONNECTIONS)
            if limit is not None:
                return limit
        return None


class QuotaMeters:
    """What clients used lately, and how long they have to wait for it."""

    def __init__(self, book: QuotaBook, windows: Windows | None = None) -> None:
        self.windows = windows or Windows()
        self._book = book
        self._rates: OrderedDict[Key, SampledRate] = OrderedDict()
        self._tokens: OrderedDict[Key, Tokens] = OrderedDict()

    def used(self, key: str, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Count it; the milliseconds to wait before the next request."""
        found = self._book.for_client(key, user, client_id)
        if found is None:
            return 0
        limit, shared = found
        rate = self._remembered(self._rates, (key, shared), SampledRate)
        rate.record(value, now_ms)
        return rate.throttle_ms(limit, now_ms)

    def give_back(self, key: str, user: str, client_id: str, value: float, now_ms: int) -> None:
        """It was not used after all."""
        found = self._book.for_client(key, user, client_id)
        if found is not None:
            self._remembered(self._rates, (key, found[1]), SampledRate).record(-value, now_ms)

    def most_at_once(self, key: str, user: str, client_id: str) -> int | None:
        """No single answer may be larger than what comes in all but one window."""
        found = self._book.for_client(key, user, client_id)
        if found is None:
            return None
        return int(found[0] * (self.windows.number - 1) * self.windows.size_ms / 1_000)

    def mutation(self, user: str, client_id: str, now_ms: int, is_strict: bool) -> Mutations | None:
        found = self._book.for_client(MUTATION, user, client_id)
        if found is None:
            return None
        limit, shared = found
        tokens = self._remembered(self._tokens, (MUTATION, shared), Tokens)
        return Mutations(tokens, limit, now_ms, is_strict)

    def _remembered(self, known: OrderedDict[Key, T], key: Key, make: Callable[[Windows], T]) -> T:
        if key in known:
            known.move_to_end(key)
        else:
            known[key] = make(self.windows)
            if len(known) > MOST_REMEMBERED:
                known.popitem(last=False)
        return known[key]


class Mutations:
    """The mutations of one request: each is taken as long as the bucket was not overdrawn before.
    A client of an older version may overdraw it, and waits afterwards."""

    def __init__(self, tokens: Tokens, limit: float, now_ms: int, is_strict: bool) -> None:
        self._tokens = tokens
        self._limit = limit
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._answers: dict[str, bool] = {}
        self.throttle_ms = 0

    def take(self, topic: str, count: int) -> bool:
        """Whether so many partitions of a topic may be made or deleted. Asked again, it says the
        same, and takes no more."""
        if topic not in self._answers:
            self._answers[topic] = self._take(count)
        return self._answers[topic]

    def _take(self, count: int) -> bool:
        overdrawn_ms = self._tokens.throttle_ms(self._limit, self._now_ms)
        if overdrawn_ms and self._is_strict:
            self.throttle_ms = overdrawn_ms
            return False
        self._tokens.record(count, self._limit, self._now_ms)
        if not self._is_strict:
            self.throttle_ms = self._tokens.throttle_ms(self._limit, self._now_ms)
        return True
