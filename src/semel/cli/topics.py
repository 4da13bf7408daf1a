"""`semel topics`: list, create, describe, alter and delete topics."""

import argparse

from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option, pair, whole
from semel.cli.connecting import with_admin
from semel.cli.exits import usage
from semel.cli.printing import show, show_one
from semel.client import Admin, NewTopic, TopicPartition


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    topics = await admin.describe_topics()
    rows = [
        (name, len(topic.partitions), topic.topic_id)
        for name, topic in sorted(topics.items())
        if arguments.internal or not topic.is_internal
    ]
    show(("topic", "partitions", "topic_id"), rows, as_json=arguments.json)


async def _create(admin: Admin, arguments: argparse.Namespace) -> None:
    new = NewTopic(
        arguments.topic,
        -1 if arguments.partitions is None else arguments.partitions,
        -1 if arguments.replication_factor is None else arguments.replication_factor,
        dict(arguments.config or ()),
    )
    await admin.create_topics([new])
    show_one({"created": arguments.topic}, as_json=arguments.json)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    name = arguments.topic
    topic = (await admin.describe_topics([name]))[name]
    places = [TopicPartition(name, index) for index in sorted(topic.partitions)]
    begin = await admin.list_offsets(dict.fromkeys(places, -2))
    end = await admin.list_offsets(dict.fromkeys(places, -1))
    stable = await admin.list_offsets(dict.fromkeys(places, -1), isolation_level="read_committed")
    rows = [
        (
            place.partition,
            topic.partitions[place.partition].leader,
            begin[place].offset,
            stable[place].offset,
            end[place].offset,
        )
        for place in places
    ]
    columns = ("partition", "leader", "log_start", "last_stable", "high_watermark")
    show(columns, rows, as_json=arguments.json, title=f"{name} ({topic.topic_id})")
    configs = await admin.describe_configs(name, only_changed=not arguments.all)
    if configs:
        show(("config", "value"), sorted(configs.items()), as_json=arguments.json)


async def _alter(admin: Admin, arguments: argparse.Namespace) -> None:
    if not arguments.config and arguments.partitions is None:
        raise usage("topics alter: say what to change, with -c NAME=VALUE or -p NUMBER")
    if arguments.config:
        changes = {name: value or None for name, value in arguments.config}
        await admin.alter_configs(arguments.topic, changes)
    if arguments.partitions is not None:
        await admin.create_partitions({arguments.topic: arguments.partitions})
    show_one({"altered": arguments.topic}, as_json=arguments.json)


async def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    await admin.delete_topics(arguments.topic)
    for name in arguments.topic:
        show_one({"deleted": name}, as_json=arguments.json)


_TOPIC = Option("topic", "the topic's name")
_CONFIG = "-c --config"

COMMAND = CommandTable(
    common=(*CONNECTION, JSON),
    actions=(
        Action("list", "names, and how many partitions they have", with_admin(_list), (
            Option("--internal", "internal topics too"),
        )),
        Action("create", "create a topic", with_admin(_create), (
            _TOPIC,
            Option("-p --partitions", "how many; without it as many as the broker makes "
                   "(num.partitions)", value="NUMBER", parse=whole(1)),
            Option("-r --replication-factor", "how many replicas; without it as many as the "
                   "broker makes", value="NUMBER", parse=whole(1)),
            Option(_CONFIG, "a config of the topic, as retention.ms=3600000; may be repeated",
                   value="NAME=VALUE", parse=pair, repeated=True),
        )),
        Action("describe", "partitions, leaders, offsets and configs", with_admin(_describe), (
            _TOPIC,
            Option("--all", "all configs, those that are as they come too"),
        )),
        Action("alter", "change configs, or add partitions", with_admin(_alter), (
            _TOPIC,
            Option("-p --partitions", "how many there shall be; they can only grow",
                   value="NUMBER", parse=whole(1)),
            Option(_CONFIG, "a config of the topic; NAME= takes it back to its default; may be "
                   "repeated", value="NAME=VALUE", parse=pair, repeated=True),
        )),
        Action("delete", "delete topics", with_admin(_delete), (
            Option("topic", "the topics' names", repeated=True),
        )),
    ),
    examples={
        "semel topics create orders -p 6": "with six partitions",
        "semel topics alter orders -c retention.ms=3600000": "keep records for an hour",
        "semel topics describe orders": "how much is in it",
    },
)  # fmt: skip
