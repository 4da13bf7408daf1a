"""`semel groups`: consumer groups, how far behind they are of what can be read at all, and a way to
move them."""

import argparse
import time
from typing import Any

from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option
from semel.cli.connecting import with_admin
from semel.cli.exits import CommandError
from semel.cli.group_reset import OPTIONS as RESET_OPTIONS
from semel.cli.group_reset import reset
from semel.cli.printing import duration, show, show_one
from semel.client import Admin, TopicPartition


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    rows = [(group.group_id, group.state, group.type) for group in await admin.list_groups()]
    show(("group", "state", "type"), rows, as_json=arguments.json)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    await _must_exist(admin, arguments.group)
    group = await admin.describe_group(arguments.group)
    rows = [
        (
            member.member_id,
            member.client_id,
            member.host,
            [str(place) for place in sorted(member.partitions)],
        )
        for member in group.members
    ]
    title = f"{group.group_id}: {group.state}"
    show(("member", "client", "host", "partitions"), rows, as_json=arguments.json, title=title)


async def _lag(admin: Admin, arguments: argparse.Namespace) -> None:
    rows: list[tuple[Any, ...]] = []
    for lag in await admin.group_lag(arguments.group):
        holder, open_ms = await _holder(admin, lag.partition) if lag.held_back else (None, None)
        rows.append((lag.partition.topic, lag.partition.partition, lag.committed,
                     lag.last_stable_offset, lag.lag, lag.held_back, holder, open_ms))  # fmt: skip
    if not rows:
        await _must_exist(admin, arguments.group)
    columns = ("topic", "partition", "committed", "last_stable", "lag", "held_back",
               "held_back_by", "open_for_ms")  # fmt: skip
    show(columns, rows, as_json=arguments.json, looks={"open_for_ms": duration})


async def _must_exist(admin: Admin, group: str) -> None:
    if group not in {known.group_id for known in await admin.list_groups()}:
        raise CommandError(f"there is no group {group!r}: see `semel groups list`")


async def _holder(admin: Admin, place: TopicPartition) -> tuple[str | None, int | None]:
    """The oldest open transaction of a partition: nothing behind its start can be read."""
    active = [
        producer
        for producer in await admin.describe_producers([place])
        if producer.transaction_start_offset is not None
    ]
    if not active:
        return None, None
    oldest = min(active, key=lambda producer: producer.transaction_start_offset or 0)
    known = await admin.list_transactions(producer_ids=[oldest.producer_id])
    if not known:
        return f"producer {oldest.producer_id} (hanging? see semel transactions)", None
    started_ms = (await admin.describe_transaction(known[0].transactional_id)).start_time_ms
    open_ms = int(time.time() * 1000) - started_ms if started_ms else None
    return known[0].transactional_id, open_ms


async def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    await admin.delete_groups([arguments.group])
    show_one({"deleted": arguments.group}, as_json=arguments.json)


_GROUP = Option("group", "the group's id")

COMMAND = CommandTable(
    common=(*CONNECTION, JSON),
    actions=(
        Action("list", "all groups", with_admin(_list)),
        Action("describe", "members and what they read", with_admin(_describe), (_GROUP,)),
        Action("lag", "lag to the last stable offset, and who holds it back", with_admin(_lag),
               (_GROUP,)),
        Action("reset", "move the committed offsets of a group without members",
               with_admin(reset), (_GROUP, *RESET_OPTIONS)),
        Action("delete", "delete a group without members, and its offsets", with_admin(_delete),
               (_GROUP,)),
    ),
    examples={
        "semel groups lag billing": "how far behind, and because of whom",
        "semel groups reset billing --to earliest --dry-run": "what would change",
        "semel groups reset billing --to @-1h --topic orders": "read the last hour again",
        "semel groups reset billing --by -100": "read 100 records of each partition again",
    },
)  # fmt: skip
