"""`semel groups`: consumer groups, and how far behind they are of what can be read at all."""

import argparse

from semel.cli.connecting import add_connection, add_json, client_settings, run_client
from semel.cli.printing import show, show_one
from semel.client import Admin, TopicPartition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    actions.add_parser("list", help="all groups")
    for name, words in (
        ("describe", "members and what they read"),
        ("lag", "lag to the last stable offset, and who holds it back"),
        ("delete", "delete a group without members, and its offsets"),
    ):
        actions.add_parser(name, help=words).add_argument("group")


def run(arguments: argparse.Namespace) -> int:
    actions = {"list": _list, "describe": _describe, "lag": _lag, "delete": _delete}

    async def work() -> None:
        async with Admin(settings=client_settings(arguments)) as admin:
            await actions[arguments.action](admin, arguments)

    return run_client(work)


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    rows = [(group.group_id, group.state, group.type) for group in await admin.list_groups()]
    show(("group", "state", "type"), rows, as_json=arguments.json)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    group = await admin.describe_group(arguments.group)
    rows = [
        (
            member.member_id,
            member.client_id,
            member.host,
            ", ".join(str(place) for place in sorted(member.partitions)),
        )
        for member in group.members
    ]
    title = f"{group.group_id}: {group.state}"
    show(("member", "client", "host", "partitions"), rows, as_json=arguments.json, title=title)


async def _lag(admin: Admin, arguments: argparse.Namespace) -> None:
    rows = []
    for lag in await admin.group_lag(arguments.group):
        holder = await _holder(admin, lag.partition) if lag.held_back else None
        rows.append((lag.partition.topic, lag.partition.partition, lag.committed, lag.lag,
                     lag.held_back, holder))  # fmt: skip
    columns = ("topic", "partition", "committed", "lag", "held_back", "held_back_by")
    show(columns, rows, as_json=arguments.json)


async def _holder(admin: Admin, place: TopicPartition) -> str | None:
    """The oldest open transaction of a partition: nothing behind its start can be read."""
    active = [
        producer
        for producer in await admin.describe_producers([place])
        if producer.transaction_start_offset is not None
    ]
    if not active:
        return None
    oldest = min(active, key=lambda producer: producer.transaction_start_offset or 0)
    known = await admin.list_transactions(producer_ids=[oldest.producer_id])
    return known[0].transactional_id if known else f"producer {oldest.producer_id}"


async def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    await admin.delete_groups([arguments.group])
    show_one({"deleted": arguments.group}, as_json=arguments.json)
