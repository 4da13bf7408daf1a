"""`semel topics`: list, create, describe, alter and delete topics."""

import argparse

from semel.cli.connecting import Actions, client_settings, run_client
from semel.cli.printing import show, show_one
from semel.client import Admin, NewTopic, TopicPartition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser)
    listing = actions.add("list", "names, and how many partitions they have")
    listing.add_argument("--internal", action="store_true", help="internal topics too")
    create = actions.add("create", "create a topic")
    create.add_argument("topic")
    create.add_argument("-p", "--partitions", type=int, default=-1)
    create.add_argument("-r", "--replication-factor", type=int, default=-1)
    create.add_argument("-c", "--config", action="append", default=[], metavar="NAME=VALUE")
    describe = actions.add("describe", "partitions, leaders, offsets and configs")
    describe.add_argument("topic")
    alter = actions.add("alter", "change configs, or add partitions")
    alter.add_argument("topic")
    alter.add_argument("-p", "--partitions", type=int)
    alter.add_argument("-c", "--config", action="append", default=[], metavar="NAME=VALUE",
                       help="NAME= takes the config back to its default")  # fmt: skip
    delete = actions.add("delete", "delete topics")
    delete.add_argument("topic", nargs="+")


def run(arguments: argparse.Namespace) -> int:
    actions = {
        "list": _list, "create": _create, "describe": _describe, "alter": _alter,
        "delete": _delete,
    }  # fmt: skip

    async def work() -> None:
        async with Admin(settings=client_settings(arguments)) as admin:
            await actions[arguments.action](admin, arguments)

    return run_client(work)


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    topics = await admin.describe_topics()
    rows = [
        (name, len(topic.partitions), topic.topic_id)
        for name, topic in sorted(topics.items())
        if arguments.internal or not topic.is_internal
    ]
    show(("topic", "partitions", "topic_id"), rows, as_json=arguments.json)


async def _create(admin: Admin, arguments: argparse.Namespace) -> None:
    configs = {name: value or "" for name, value in _pairs(arguments.config).items()}
    new = NewTopic(arguments.topic, arguments.partitions, arguments.replication_factor, configs)
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
    changed = await admin.describe_configs(name, only_changed=True)
    if changed:
        show(("config", "value"), sorted(changed.items()), as_json=arguments.json)


async def _alter(admin: Admin, arguments: argparse.Namespace) -> None:
    if arguments.config:
        await admin.alter_configs(arguments.topic, _pairs(arguments.config))
    if arguments.partitions is not None:
        await admin.create_partitions({arguments.topic: arguments.partitions})
    show_one({"altered": arguments.topic}, as_json=arguments.json)


async def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    await admin.delete_topics(arguments.topic)
    for name in arguments.topic:
        show_one({"deleted": name}, as_json=arguments.json)


def _pairs(words: list[str]) -> dict[str, str | None]:
    pairs: dict[str, str | None] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise SystemExit(f"semel: --config {word}: should be NAME=VALUE")
        pairs[name] = value or None
    return pairs
