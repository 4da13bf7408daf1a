"""Sets of access rules, one principal each: what each client of the access matrix may do."""

from __future__ import annotations

from collections.abc import Iterator

from semel.core.access.rules import SUPPORTED_OPERATIONS, Rule
from semel.wire.acls import ALL, ALLOW, DENY, LITERAL, PREFIXED

HERE, ELSEWHERE, ANYWHERE = "127.0.0.1", "10.9.8.7", "*"
SUPER = "super"
NAMED = {
    "TOPIC": ("m-topic", "m-ghost"),
    "GROUP": ("m-group", "m-nogroup", "m-newgroup", "m-share", "m-streams"),
    "CLUSTER": ("kafka-cluster",),
    "TRANSACTIONAL_ID": ("m-txn",),
    "DELEGATION_TOKEN": ("m-token",),
    "USER": ("User:m-user",),
}
PREFIXES = dict.fromkeys(NAMED, "m-") | {"CLUSTER": "kafka-cluster", "USER": "User:m-"}

#: Without a principal, which the name of the set gives.
Entry = tuple[str, str, str, str, str, str]
Entries = list[Entry]


def entries(
    how: str, kind: str, operation: str = ALL, permission: str = ALLOW, host: str = ANYWHERE
) -> Entries:
    """An operation on the resources of a type, named exactly, by prefix, or by the wildcard."""
    if how == "prefix":
        names, pattern = (PREFIXES[kind],), PREFIXED
    elif how == "wildcard" and kind != "CLUSTER":
        names, pattern = ("*",), LITERAL
    else:
        names, pattern = NAMED[kind], LITERAL
    return [(kind, name, pattern, host, operation, permission) for name in names]


def everything(how: str, host: str = ANYWHERE, but: str = "") -> Entries:
    return [entry for kind in NAMED if kind != but for entry in entries(how, kind, host=host)]


def sets() -> dict[str, Entries]:
    found: dict[str, Entries] = {"none": [], SUPER: []}
    for how in ("literal", "prefix", "wildcard"):
        found[f"all-{how}"] = everything(how)
    found["all-here"] = everything("literal", HERE)
    found["all-elsewhere"] = everything("wildcard", ELSEWHERE)
    found["denied-elsewhere"] = everything("literal") + [
        entry for kind in NAMED for entry in entries("wildcard", kind, ALL, DENY, ELSEWHERE)
    ]
    found["denied-here"] = everything("wildcard") + [
        entry for kind in NAMED for entry in entries("prefix", kind, ALL, DENY, HERE)
    ]
    for kind, operations in SUPPORTED_OPERATIONS.items():
        short = kind.lower().replace("_", "")
        found[f"only-{short}"] = entries("wildcard", kind)
        found[f"but-{short}"] = everything("wildcard", but=kind)
        for operation in operations:
            word = f"{short}-{operation.lower().replace('_', '')}"
            for how in ("literal", "prefix", "wildcard"):
                found[f"{how}-{word}"] = entries(how, kind, operation)
            found[f"deny-{word}"] = everything("wildcard") + entries(
                "literal", kind, operation, DENY
            )
    return found


def rules() -> Iterator[Rule]:
    for name, wanted in sets().items():
        for kind, resource, pattern, host, operation, permission in wanted:
            yield Rule(kind, resource, pattern, f"User:{name}", host, operation, permission)
