"""The protocol as this broker speaks it, from its handlers and the table of versions."""

import ast
from importlib.util import find_spec
from pathlib import Path

from semel.broker.api import modules
from semel.wire.messages import ADVERTISED, APIS

_INTRODUCTION = """\
# APIs and versions

The requests of Kafka's protocol that the broker answers, with the versions that it tells clients of
(ApiVersions). They are those of Apache Kafka 4.3.1.

| key | API | versions | what it does |
|---|---|---|---|
"""
_REST = """
## Known, but not answered

The package can read and write these messages, but the broker does not answer them: {names}.

Requests that are not on this page are unknown to the broker. It closes the connection that sends
one, and says so in its log. [](../skipped.md) says why they are left out.
"""


def page() -> str:
    rows = [_row(key, module) for key, module in sorted(modules().items())]
    unanswered = [f"{name} ({key})" for key, (name, _) in APIS.items() if key not in modules()]
    rest = _REST.format(names=", ".join(unanswered)) if unanswered else ""
    return _INTRODUCTION + "\n".join(rows) + "\n" + rest


def _row(key: int, module: str) -> str:
    return f"| {key} | {APIS[key][0]} | {_span(ADVERTISED[key])} | {_first_sentence(module)} |"


def _span(versions: range) -> str:
    first, last = versions[0], versions[-1]
    return str(first) if first == last else f"{first}–{last}"


def _first_sentence(module: str) -> str:
    """What a handler's docstring says after its name: `EndTxn (…): commit or abort …`."""
    spec = find_spec(f"semel.broker.api.{module}")
    assert spec is not None
    assert spec.origin is not None
    words = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    said = " ".join(words.split("\n\n")[0].split()).partition(": ")[2]
    return (said[:1].upper() + said[1:]).replace("|", "\\|")
