"""What a failing test shows of its broker: the last requests, open transactions, topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from semel.testing.transactions import open_transactions

if TYPE_CHECKING:
    from semel.testing.faults.watching import RequestSeen, RequestWatch
    from semel.testing.running import BrokerUnderTest


def report(broker: BrokerUnderTest, watch: RequestWatch) -> str:
    return "\n".join(broker.call(lambda: [*_lines(broker, watch)]))


def _lines(broker: BrokerUnderTest, watch: RequestWatch) -> Iterator[str]:
    yield f"broker {broker.bootstrap_servers}, the last requests (newest last):"
    yield from [f"  {_request(broker, seen)}" for seen in watch.last] or ["  none"]
    yield "open transactions:"
    yield from [f"  {txn}" for txn in open_transactions(broker)] or ["  none"]
    yield "topics:"
    yield from [*_topics(broker)] or ["  none"]


def _request(broker: BrokerUnderTest, seen: RequestSeen) -> str:
    about = seen.about
    by_id = broker.catalog.topics_by_id
    topics = about.topics + [by_id[id].name for id in about.topic_ids if id in by_id]
    named = {
        "transaction": about.transactional_ids,
        "group": about.group_ids,
        "topic": [*dict.fromkeys(topics)],
    }
    words = "".join(f" {what} {', '.join(names)}" for what, names in named.items() if names)
    fault = f"  [fault: {seen.fault}]" if seen.fault else ""
    answer = seen.answer if seen.ended_at is not None else "not answered yet"
    took = "" if seen.ended_at is None else f" after {(seen.ended_at - seen.at) * 1000:.0f} ms"
    client = seen.client_id or "a client without a name"
    return f"{seen.at:8.3f} s  {client}: {seen.api} v{seen.version}{words}: {answer}{took}{fault}"


def _topics(broker: BrokerUnderTest) -> Iterator[str]:
    for topic in broker.catalog.topics.values():
        if not topic.is_internal:
            for partition in broker.partitions.of(topic.name):
                yield (
                    f"  {partition!r}: offsets {partition.log.start_offset} to "
                    f"{partition.high_watermark}, committed up to {partition.last_stable_offset}"
                )
