"""`semel groups`: consumer groups, and how far behind they are of what can be read at all."""

import argparse
import time

from semel.cli.connecting import Actions, client_settings, run_client
from semel.cli.printing import duration, show, show_one
from semel.client import Admin, TopicPartition, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser)
    actions.add("list", "all groups")
    for name, words in (
        ("describe", "members and what they read"),
        ("lag", "lag to the last stable offset, and who holds it back"),
        ("delete", "delete a group without members, and its offsets"),
    ):
        actions.add(name, words).add_argument("group")


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
    await _must_exist(admin, arguments.group)
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
        holder, since = await _holder(admin, lag.partition) if lag.held_back else (None, None)
        rows.append((lag.partition.topic, lag.partition.partition, lag.committed,
                     lag.last_stable_offset, lag.lag, lag.held_back, holder, since))  # fmt: skip
    if not rows:
        await _must_exist(admin, arguments.group)
    columns = ("topic", "partition", "committed", "last_stable", "lag", "held_back",
               "held_back_by", "open_for")  # fmt: skip
    show(columns, rows, as_json=arguments.json)


async def _must_exist(admin: Admin, group: str) -> None:
    if group not in {known.group_id for known in await admin.list_groups()}:
        raise UsageError(f"there is no group {group!r}")


async def _holder(admin: Admin, place: TopicPartition) -> tuple[str | None, str | None]:
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
    open_for = duration(time.time() * 1000 - started_ms) if started_ms else None
    return known[0].transactional_id, open_for


async def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    await admin.delete_groups([arguments.group])
    show_one({"deleted": arguments.group}, as_json=arguments.json)
