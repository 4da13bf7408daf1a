"""`semel quotas`: how much users, client ids and addresses may use."""

import argparse

from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option
from semel.cli.connecting import with_admin
from semel.cli.exits import usage
from semel.cli.printing import show
from semel.client import Admin

#: Stands for all that have no quota of their own, as in Kafka's tools.
DEFAULT = "<default>"
_COLUMNS = ("user", "client_id", "ip", "quota", "value")
_TYPES = ("user", "client-id", "ip")


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    rows = [
        (*(_shown(quota.entity, kind) for kind in _TYPES), quota.name, quota.value)
        for quota in await admin.list_quotas()
    ]
    show(_COLUMNS, rows, as_json=arguments.json)


def _shown(entity: object, kind: str) -> str:
    assert isinstance(entity, dict)
    return entity[kind] or DEFAULT if kind in entity else ""


async def _set(admin: Admin, arguments: argparse.Namespace) -> None:
    changes: dict[str, float | None] = {}
    for word in arguments.quotas:
        name, _, text = word.partition("=")
        try:
            changes[name] = float(text)
        except ValueError:
            raise usage(f"quotas set: {word} should be NAME=NUMBER") from None
    await admin.alter_quotas(_entity(arguments), changes)


async def _remove(admin: Admin, arguments: argparse.Namespace) -> None:
    await admin.alter_quotas(_entity(arguments), dict.fromkeys(arguments.quotas))


def _entity(arguments: argparse.Namespace) -> dict[str, str | None]:
    given = {kind: getattr(arguments, kind.replace("-", "_")) for kind in _TYPES}
    entity = {
        kind: None if name == DEFAULT else name for kind, name in given.items() if name is not None
    }
    if not entity:
        raise usage("quotas: whose? Say --user, --client-id, both, or --ip")
    return entity


_WHOSE = (
    Option("--user", f"of this user; {DEFAULT} for all that have none of their own", value="NAME"),
    Option("--client-id", "of this client id, alone or together with the user", value="ID"),
    Option("--ip", "of this address", value="ADDRESS"),
)

COMMAND = CommandTable(
    common=(*CONNECTION, JSON),
    actions=(
        Action("list", "all quotas that are set", with_admin(_list)),
        Action("set", "set quotas, in all per second", with_admin(_set), (
            Option("quotas", "such as producer_byte_rate=1048576", value="NAME=NUMBER",
                   repeated=True, required=True),
            *_WHOSE,
        )),
        Action("remove", "remove quotas", with_admin(_remove), (
            Option("quotas", "such as producer_byte_rate", value="NAME",
                   repeated=True, required=True),
            *_WHOSE,
        )),
    ),
    examples={
        "semel quotas list": "who is limited",
        "semel quotas set producer_byte_rate=1048576 --client-id nightly": "a megabyte a second",
        "semel quotas remove producer_byte_rate --client-id nightly": "no limit any more",
    },
)  # fmt: skip
