"""`semel transactions`: see, find and end transactions (KIP-664), on any Kafka."""

import argparse
import time

from semel.cli.connecting import Actions, client_settings, run_client
from semel.cli.printing import duration, moment, show, show_one
from semel.client import Admin, TopicPartition, UsageError
from semel.client.admin.transactions import DEFAULT_MAX_TRANSACTION_MS, ActiveProducer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser)
    listing = actions.add("list", "transactional ids and their states")
    listing.add_argument("--state", action="append", default=[], help="as Ongoing; repeatable")
    listing.add_argument("--longer-than-ms", type=int, default=-1)
    listing.add_argument("--pattern", help="a regular expression for the id")
    describe = actions.add("describe", "one transactional id")
    describe.add_argument("id")
    hanging = actions.add("find-hanging", "open ones that nobody will end")
    hanging.add_argument("--topic", action="append", default=[], help="all topics, if not said")
    hanging.add_argument("--open-longer-than-ms", type=int, default=DEFAULT_MAX_TRANSACTION_MS)
    abort = actions.add("abort", "end a hanging one in a partition")
    abort.add_argument("topic")
    abort.add_argument("partition", type=int)
    abort.add_argument("start_offset", type=int)
    terminate = actions.add("terminate", "fence a producer and abort what it has open")
    terminate.add_argument("id")


def run(arguments: argparse.Namespace) -> int:
    actions = {
        "list": _list, "describe": _describe, "find-hanging": _find_hanging, "abort": _abort,
        "terminate": _terminate,
    }  # fmt: skip

    async def work() -> None:
        async with Admin(settings=client_settings(arguments)) as admin:
            await actions[arguments.action](admin, arguments)

    return run_client(work)


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    found = await admin.list_transactions(
        states=arguments.state,
        longer_than_ms=arguments.longer_than_ms,
        pattern=arguments.pattern,
    )
    rows = [
        (each.transactional_id, each.state, each.producer_id, each.coordinator) for each in found
    ]
    show(("id", "state", "producer", "coordinator"), rows, as_json=arguments.json)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    found = await admin.describe_transaction(arguments.id)
    facts = {
        "id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout": duration(found.timeout_ms),
        "started": moment(found.start_time_ms),
        "coordinator": found.coordinator,
        "partitions": ", ".join(str(place) for place in sorted(found.partitions)),
    }
    show_one(facts, as_json=arguments.json)


async def _find_hanging(admin: Admin, arguments: argparse.Namespace) -> None:
    topics = await admin.describe_topics(arguments.topic or None)
    places = [TopicPartition(name, i) for name, topic in topics.items() for i in topic.partitions]
    now_ms = int(time.time() * 1000)
    found = await admin.find_hanging(
        places, open_longer_than_ms=arguments.open_longer_than_ms, now_ms=now_ms
    )
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer_id,
            each.producer_epoch,
            each.transaction_start_offset,
            duration(now_ms - each.last_timestamp_ms),
        )
        for each in found
    ]
    columns = ("topic", "partition", "producer", "epoch", "start_offset", "silent_for")
    show(columns, rows, as_json=arguments.json)


async def _abort(admin: Admin, arguments: argparse.Namespace) -> None:
    place = TopicPartition(arguments.topic, arguments.partition)
    hanging = await _starting_at(admin, place, arguments.start_offset)
    await admin.abort_transaction(hanging)
    show_one({"aborted": f"the transaction at {place}, offset {arguments.start_offset}"},
             as_json=arguments.json)  # fmt: skip


async def _starting_at(admin: Admin, place: TopicPartition, offset: int) -> ActiveProducer:
    for producer in await admin.describe_producers([place]):
        if producer.transaction_start_offset == offset:
            return producer
    raise UsageError(f"no open transaction in {place} starts at offset {offset}")


async def _terminate(admin: Admin, arguments: argparse.Namespace) -> None:
    identity = await admin.fence_producer(arguments.id)
    show_one({"fenced": arguments.id, "epoch": identity.epoch}, as_json=arguments.json)
