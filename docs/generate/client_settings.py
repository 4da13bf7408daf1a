"""The settings of producers, consumers and admin clients, from the classes that hold them."""

import ast
import dataclasses
import inspect
import textwrap

from generate.markdown import code, entry, facts
from semel.client.settings import ClientSettings, ConsumerSettings, ProducerSettings

_INTRODUCTION = """\
# Settings of the client

Each is a keyword of `Producer`, `Consumer`, `Admin` and `transact`, under Kafka's name with
underscores: `Producer("localhost:9092", linger_ms=10)`. A dict of Kafka's dotted names does as
well: `Producer({"bootstrap.servers": "localhost:9092", "linger.ms": "10"})`. An unknown name is an
error that names the nearest one.

"""
_SECTIONS = (
    ("All clients", "client", ClientSettings),
    ("Producers", "producer", ProducerSettings),
    ("Consumers", "consumer", ConsumerSettings),
)


def page() -> str:
    parts, common = [_INTRODUCTION], {field.name for field in dataclasses.fields(ClientSettings)}
    for title, anchor, kind in _SECTIONS:
        parts.append(f"## {title}\n")
        left_out = set() if kind is ClientSettings else common
        parts += [
            _entry(field, anchor, docs_of(kind).get(field.name, ""))
            for field in dataclasses.fields(kind)
            if field.name not in left_out
        ]
    return "\n".join(parts)


def docs_of(kind: type) -> dict[str, str]:
    """The string below each field, of the class and of those it is made from."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(each):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                name, words = ast.unparse(field.target), ast.literal_eval(below.value)
                found[name] = inspect.cleandoc(str(words)).replace("\n", " ")
    return found


def _entry(field: "dataclasses.Field[object]", section: str, doc: str) -> str:
    default = "not set by default"
    if field.default not in (None, "", dataclasses.MISSING):
        default = f"default {code(str(field.default))}"
    kind = field.type if isinstance(field.type, str) else _type_name(field.type)
    return entry(field.name, doc, facts(default, code(kind)), anchor=f"{section}-{field.name}")


def _type_name(kind: object) -> str:
    words = kind.__name__ if isinstance(kind, type) else str(kind)
    for module in ("typing.", "ssl.", "collections.abc.", "semel.net.client_sasl."):
        words = words.replace(module, "")
    return (
        words.replace("Literal", "").replace("[", "").replace("]", "")
        if ("Literal" in words)
        else words
    )
