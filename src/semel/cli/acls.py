"""`semel acls`: list, add and remove access rules."""

import argparse
from collections.abc import Iterable

from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option
from semel.cli.connecting import with_admin
from semel.cli.exits import usage
from semel.cli.printing import show, show_one
from semel.client import Acl, AclFilter, Admin
from semel.wire.acls import OPERATIONS, RESOURCE_TYPES

CLUSTER, CLUSTER_NAME = "CLUSTER", "kafka-cluster"
_TYPES = tuple(name.lower().replace("_", "-") for name in RESOURCE_TYPES[2:])
_OPERATIONS = tuple(name.lower().replace("_", "-") for name in OPERATIONS[2:])
_COLUMNS = ("principal", "permission", "operation", "resource", "pattern", "host")


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    found: dict[Acl, None] = {}
    for wanted in _filters(arguments):
        found |= dict.fromkeys(await admin.describe_acls(wanted))
    _show(found, arguments)


async def _add(admin: Admin, arguments: argparse.Namespace) -> None:
    kind, name = arguments.resource
    if name is None:
        raise usage(f"acls add: which {kind.lower()}? Say {_word(kind)}:NAME, or {_word(kind)}:'*'")
    made = [
        Acl(
            _principal(arguments.principal),
            operation,
            kind,
            name,
            "PREFIXED" if arguments.prefix else "LITERAL",
            arguments.host,
            "DENY" if arguments.deny else "ALLOW",
        )
        for operation in arguments.operations
    ]
    await admin.create_acls(made)
    _show(made, arguments)


async def _remove(admin: Admin, arguments: argparse.Namespace) -> None:
    filters = list(_filters(arguments))
    if filters == [AclFilter()] and not arguments.all:
        raise usage(
            "acls remove: say which, with --principal, --operation, --resource or --host; --all "
            "removes every rule"
        )
    removed = await admin.delete_acls(filters)
    if not removed:
        show_one({"removed": 0}, as_json=arguments.json)
    _show(removed, arguments)


def _filters(arguments: argparse.Namespace) -> Iterable[AclFilter]:
    kind, name = arguments.resource or ("ANY", None)
    principal = arguments.principal and _principal(arguments.principal)
    pattern = "MATCH" if arguments.matching else "PREFIXED" if arguments.prefix else "ANY"
    for operation in arguments.operation or ("ANY",):
        yield AclFilter(principal, operation, kind, name, pattern, arguments.host)


def _show(acls: Iterable[Acl], arguments: argparse.Namespace) -> None:
    rows = [
        (
            acl.principal,
            acl.permission.lower(),
            _word(acl.operation),
            f"{_word(acl.resource_type)}:{acl.name}",
            acl.pattern.lower(),
            acl.host,
        )
        for acl in acls
    ]
    show(_COLUMNS, rows, as_json=arguments.json)


def _principal(text: str) -> str:
    kind, colon, name = text.partition(":")
    if not colon or not kind or not name:
        raise usage(
            f"{text!r} should be TYPE:NAME, as User:{text or 'alice'}; User:'*' is everyone"
        )
    return text


def _resource(text: str) -> tuple[str, str | None]:
    kind, _, name = text.partition(":")
    known = kind.lower().replace("_", "-")
    if known not in _TYPES:
        raise argparse.ArgumentTypeError(
            f"{text!r} should be TYPE:NAME, as topic:orders; types are {', '.join(_TYPES)}"
        )
    kind = known.upper().replace("-", "_")
    return kind, name or (CLUSTER_NAME if kind == CLUSTER else None)


def _operations(text: str) -> list[str]:
    found = []
    for one in text.split(","):
        known = one.strip().lower().replace("_", "-")
        if known not in _OPERATIONS:
            raise argparse.ArgumentTypeError(
                f"there is no operation {one!r}; known: {', '.join(_OPERATIONS)}"
            )
        found.append(known.upper().replace("-", "_"))
    return found


def _word(name: str) -> str:
    return name.lower().replace("_", "-")


_PREFIX = Option("--prefix", "the name is a prefix: what begins so is meant")
_WHICH = (
    Option("--principal", "whose rules, as User:alice", value="PRINCIPAL"),
    Option("--operation", "of which operations", value="NAMES", parse=_operations),
    Option("--resource", "on which resource, as topic:orders; without a name, on all of the type",
           value="TYPE:NAME", parse=_resource),
    _PREFIX,
    Option("--matching", "all rules that apply to the resource: by its name, a prefix of it, or *"),
    Option("--host", "of which host", value="ADDRESS"),
)  # fmt: skip

COMMAND = CommandTable(
    common=(*CONNECTION, JSON),
    actions=(
        Action("list", "the rules, or some of them", with_admin(_list), _WHICH),
        Action("add", "allow, or deny, somebody something", with_admin(_add), (
            Option("principal", "who, as User:alice; User:'*' is everyone"),
            Option("operations", f"what, with commas between: {', '.join(_OPERATIONS)}",
                   parse=_operations),
            Option("resource", f"on what, as topic:orders or cluster; topic:'*' is every topic. "
                   f"Types: {', '.join(_TYPES)}", parse=_resource),
            _PREFIX,
            Option("--host", "only from this address", value="ADDRESS", default="*"),
            Option("--deny", "deny it; a denial wins over everything that allows"),
        )),
        Action("remove", "remove the rules that match", with_admin(_remove), (
            *_WHICH,
            Option("--all", "every rule there is"),
        )),
    ),
    notes="Rules are obeyed by a broker whose authorizer.class.name is set (docs/security.md).",
    examples={
        "semel acls add User:alice read topic:orders": "alice may read it (and so look at it)",
        "semel acls add User:etl write,describe topic:raw- --prefix": "all topics that begin so",
        "semel acls add User:bob all topic:secrets --deny": "whatever else allows it",
        "semel acls list --resource topic:orders --matching": "who may do what with it",
        "semel acls remove --principal User:bob": "all of bob's",
    },
)  # fmt: skip
