"""`semel transactions`: see, find and end transactions (KIP-664), on any Kafka."""

import argparse
import time

from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option, whole
from semel.cli.connecting import with_admin
from semel.cli.exits import CommandError
from semel.cli.printing import duration, moment, show, show_one
from semel.client import Admin, TopicPartition
from semel.client.admin.transactions import DEFAULT_MAX_TRANSACTION_MS, ActiveProducer


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    found = await admin.list_transactions(
        states=arguments.state or (),
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
        "timeout_ms": found.timeout_ms,
        "started_ms": found.start_time_ms,
        "coordinator": found.coordinator,
        "partitions": [str(place) for place in sorted(found.partitions)],
    }
    looks = {"timeout_ms": duration, "started_ms": moment}
    show_one(facts, as_json=arguments.json, looks=looks)


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
            now_ms - each.last_timestamp_ms,
        )
        for each in found
    ]
    columns = ("topic", "partition", "producer", "epoch", "start_offset", "silent_for_ms")
    show(columns, rows, as_json=arguments.json, looks={"silent_for_ms": duration})


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
    raise CommandError(
        f"no open transaction in {place} starts at offset {offset}: see `semel transactions "
        "find-hanging`"
    )


async def _terminate(admin: Admin, arguments: argparse.Namespace) -> None:
    identity = await admin.fence_producer(arguments.id)
    show_one({"fenced": arguments.id, "epoch": identity.epoch}, as_json=arguments.json)


_ID = Option("id", "the transactional id")

COMMAND = CommandTable(
    common=(*CONNECTION, JSON),
    actions=(
        Action("list", "transactional ids and their states", with_admin(_list), (
            Option("--state", "only those in this state, as Ongoing; may be repeated",
                   value="STATE", repeated=True),
            Option("--longer-than-ms", "only those open for longer than this", value="NUMBER",
                   parse=whole(-1), default=-1),
            Option("--pattern", "only ids that this regular expression matches",
                   value="EXPRESSION"),
        )),
        Action("describe", "one transactional id", with_admin(_describe), (_ID,)),
        Action("find-hanging", "open ones that nobody will end", with_admin(_find_hanging), (
            Option("--topic", "only in this topic; may be repeated", value="TOPIC",
                   repeated=True),
            Option("--open-longer-than-ms", "only those open for longer than this",
                   value="NUMBER", parse=whole(0), default=DEFAULT_MAX_TRANSACTION_MS),
        )),
        Action("abort", "end a hanging one in a partition", with_admin(_abort), (
            Option("topic", "the topic, as find-hanging shows it"),
            Option("partition", "the partition", parse=whole(0)),
            Option("start_offset", "the offset at which the transaction starts",
                   parse=whole(0)),
        )),
        Action("terminate", "fence a producer and abort what it has open",
               with_admin(_terminate), (_ID,)),
    ),
    examples={
        "semel transactions list --state Ongoing": "what is open now",
        "semel transactions find-hanging": "what keeps readers from going on",
        "semel transactions terminate billing-1": "end what a dead producer left open",
    },
)  # fmt: skip
