"""Fetch sessions (KIP-227): what a consumer reads, remembered, so that it need not say it again.

A session holds the partitions of its client. An incremental request names only what changed; an
incremental answer holds only partitions with something new. Sessions are few, and bounded in number
and in bytes: the least recently used one goes when a new one needs its place, but not while it is
in use. Without a session a client is served as well; it only has to say everything each time.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from semel.wire.errors import ErrorCode
from semel.wire.messages.fetch import FetchRequest

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
LARGEST_EPOCH = LARGEST_ID = 2**31 - 1
LIVELY_MS = 120_000  # Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS

#: What a partition of a session, and a session, cost in memory beside the topic's name.
PARTITION_BYTES, SESSION_BYTES = 400, 500

Topic = str | UUID


class CachedPartition:
    """One partition a client reads, and what it was last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "told_high_watermark",
        "told_start_offset",
        "topic",
    )

    def __init__(self, topic: Topic, asked: FetchRequest.FetchPartition) -> None:
        self.topic = topic
        self.index = asked.partition
        self.told_high_watermark = -1
        self.told_start_offset = -1
        self.update(asked)

    @property
    def kept_bytes(self) -> int:
        return PARTITION_BYTES + (len(self.topic) if isinstance(self.topic, str) else 0)

    def update(self, asked: FetchRequest.FetchPartition) -> None:
        self.current_leader_epoch = asked.current_leader_epoch
        self.fetch_offset = asked.fetch_offset
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.max_bytes = asked.partition_max_bytes


class Session:
    __slots__ = ("by_id", "epoch", "id", "kept_bytes", "used_ms", "wanted")

    def __init__(
        self, id: int, by_id: bool, wanted: Iterable[CachedPartition], now_ms: int
    ) -> None:
        self.id = id
        self.by_id = by_id
        self.epoch = 1
        self.used_ms = now_ms
        self.wanted = OrderedDict(((item.topic, item.index), item) for item in wanted)
        self.kept_bytes = kept_bytes(self.wanted.values())

    def update(self, request: FetchRequest, by_id: bool) -> None:
        for topic in request.topics:
            name = topic.topic_id if by_id else topic.topic
            for asked in topic.partitions:
                known = self.wanted.get((name, asked.partition))
                if known is None:
                    new = self.wanted[name, asked.partition] = CachedPartition(name, asked)
                    self.kept_bytes += new.kept_bytes
                else:
                    known.update(asked)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                gone = self.wanted.pop((name, index), None)
                self.kept_bytes -= 0 if gone is None else gone.kept_bytes

    def served(self, wanted: CachedPartition) -> None:
        """It got data, so the others go first next time: no partition starves the rest."""
        key = (wanted.topic, wanted.index)
        if key in self.wanted:
            self.wanted.move_to_end(key)


class Fetch(NamedTuple):
    """What one request reads: in a session or without one, told in full or as a difference."""

    wanted: list[CachedPartition]
    session: Session | None
    is_incremental: bool

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.id


class FetchSessions:
    """Least recently used first."""

    def __init__(self, slots: int, most_bytes: int = 1 << 62) -> None:
        self._slots = slots
        self._most_bytes = most_bytes
        self.kept_bytes = 0
        self._sessions: OrderedDict[int, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, version: int, now_ms: int) -> Fetch | ErrorCode:
        """Which partitions the request means (FetchManager.newContext)."""
        by_id = version >= 13
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._drop(request.session_id)
            wanted = _wanted(request, by_id)
            if request.session_epoch == FINAL_EPOCH or version < 7:
                return Fetch(wanted, None, is_incremental=False)
            return Fetch(wanted, self._new(wanted, by_id, now_ms), is_incremental=False)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        before = session.kept_bytes
        session.update(request, by_id)
        if session.kept_bytes != before:
            self.kept_bytes += session.kept_bytes - before
            if not session.wanted:
                self._drop(session.id)
                return Fetch([], None, is_incremental=False)
            if session.kept_bytes > before and self.kept_bytes > self._most_bytes:
                self._drop(session.id)  # the client begins anew, perhaps without a session
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        session.epoch = 1 if session.epoch == LARGEST_EPOCH else session.epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session.id)
        return Fetch(list(session.wanted.values()), session, is_incremental=True)

    def _new(self, wanted: list[CachedPartition], by_id: bool, now_ms: int) -> Session | None:
        if not wanted or not self._make_room(kept_bytes(wanted), now_ms):
            return None
        id = random.randint(1, LARGEST_ID)
        while id in self._sessions:
            id = random.randint(1, LARGEST_ID)
        session = self._sessions[id] = Session(id, by_id, wanted, now_ms)
        self.kept_bytes += session.kept_bytes
        return session

    def _make_room(self, size: int, now_ms: int) -> bool:
        while len(self._sessions) >= self._slots or self.kept_bytes + size > self._most_bytes:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.used_ms < LIVELY_MS:
                return False
            self._drop(oldest.id)
        return True

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.kept_bytes -= session.kept_bytes


def kept_bytes(wanted: Iterable[CachedPartition]) -> int:
    return SESSION_BYTES + sum(item.kept_bytes for item in wanted)


def _wanted(request: FetchRequest, by_id: bool) -> list[CachedPartition]:
    return [
        CachedPartition(topic.topic_id if by_id else topic.topic, asked)
        for topic in request.topics
        for asked in topic.partitions
    ]
