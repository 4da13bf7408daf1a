"""`semel cluster`: what the cluster is made of, and how its brokers are set."""

import argparse
from typing import Any

from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option, whole
from semel.cli.connecting import with_admin
from semel.cli.exits import CommandError
from semel.cli.printing import show, show_one
from semel.client import Admin


async def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    cluster = await admin.describe_cluster()
    topics = list((await admin.describe_topics()).values())
    leads = [place.leader for topic in topics for place in topic.partitions.values()]
    brokers = [
        {
            "broker": node.node_id,
            "address": f"{node.host}:{node.port}",
            "is_controller": node.node_id == cluster.controller_id,
            "leads": leads.count(node.node_id),
        }
        for node in sorted(cluster.brokers)
    ]
    facts: dict[str, Any] = {
        "cluster": cluster.cluster_id,
        "topics": sum(not topic.is_internal for topic in topics),
        "partitions": sum(len(topic.partitions) for topic in topics if not topic.is_internal),
        "groups": len(await admin.list_groups()),
    }
    if arguments.json:
        show_one(facts | {"brokers": brokers}, as_json=True)
        return
    show_one(facts, as_json=False)
    print()
    show(list(brokers[0]), [list(broker.values()) for broker in brokers], as_json=False,
         looks={"is_controller": _yes})  # fmt: skip


async def _configs(admin: Admin, arguments: argparse.Namespace) -> None:
    known = sorted(node.node_id for node in (await admin.describe_cluster()).brokers)
    wanted = known if arguments.broker is None else [arguments.broker]
    if missing := set(wanted) - set(known):
        have = ", ".join(map(str, known))
        raise CommandError(f"there is no broker {missing.pop()} in this cluster: it has {have}")
    rows = []
    for broker in wanted:
        changed = await admin.describe_configs(broker=broker, only_changed=True)
        shown = await admin.describe_configs(broker=broker) if arguments.all else changed
        rows += [
            (broker, name, value, name not in changed)
            for name, value in sorted(shown.items())
            if arguments.pattern is None or arguments.pattern in name
        ]
    show(("broker", "config", "value", "is_default"), rows, as_json=arguments.json,
         looks={"is_default": _yes})  # fmt: skip


def _yes(is_so: bool) -> str:
    return "yes" if is_so else ""


COMMAND = CommandTable(
    common=(*CONNECTION, JSON),
    actions=(
        Action("describe", "its id, its brokers, and how much is in it", with_admin(_describe)),
        Action("configs", "settings of its brokers that are not as they come",
               with_admin(_configs), (
            Option("--all", "all settings, those that are as they come too"),
            Option("--broker", "only this broker", value="ID", parse=whole(0)),
            Option("--pattern", "only names with this text in them", value="TEXT"),
        )),
    ),
    examples={
        "semel cluster describe": "who is there",
        "semel cluster configs --all --pattern retention": "how long data is kept",
    },
)  # fmt: skip
