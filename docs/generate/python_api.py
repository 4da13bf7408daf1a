"""Pages of the Python API: every public name, with the docstring that an editor shows.

Sphinx reads signatures and docstrings; here is said which names there are, and in which order. No
name is loaded here: those of Spark need a Spark.
"""

from collections.abc import Iterable
from importlib import import_module

_PAGE = """\
# {title}

{words}

```{{eval-rst}}
{directives}
```
"""
#: Page → its title, what it says first, the module, and the names that come before the others.
PAGES = {
    "python": (
        "Python: asyncio",
        "`semel.client`, and `semel.Broker`. [The blocking clients](blocking.md) have the same"
        " names, without `await`.",
        "semel.client",
        ("Producer", "Consumer", "transact", "Admin", "Ledger"),
    ),
    "blocking": (
        "Python: blocking",
        "`semel.client.blocking`, for scripts and notebooks.",
        "semel.client.blocking",
        ("Producer", "Consumer", "transact", "Admin", "Ledger"),
    ),
    "exceptions": (
        "Python: exceptions",
        "`semel.errors`. Kafka's codes are in [errors](errors.md).",
        "semel.errors",
        ("SemelError", "RetriableError", "AbortableError", "FatalError"),
    ),
    "testing": (
        "Python: testing",
        "`semel.testing`, and the pytest fixtures. [The guide](../testing.md) shows them at work.",
        "semel.testing",
        ("Kafka", "Faults", "Fault", "StoredRecord", "OpenTransaction"),
    ),
    "spark": (
        "Python: Spark",
        "`semel.spark`. [The guide](../guides/spark.md) has the options.",
        "semel.spark",
        ("Pipeline", "ExactlyOnceSink", "write", "session", "register"),
    ),
}


def page(name: str) -> str:
    title, words, module, first = PAGES[name]
    loaded = import_module(module)
    rest = [each for each in sorted(loaded.__all__) if each not in (*first, "ErrorCode")]
    if module == "semel.client":  # its exceptions have a page of their own
        errors = import_module("semel.errors").__all__
        rest = [each for each in rest if each not in errors]
    directives = [_directive(module, each) for each in (*first, *rest)]
    if name == "python":
        directives.insert(0, _class("semel", "Broker", "start, stop, bootstrap_servers, port"))
    return _PAGE.format(title=title, words=words, directives="\n".join(directives))


def _directive(module: str, name: str) -> str:
    if name[0].isupper():
        return _class(module, name)
    return _lines([f".. autofunction:: {module}.{name}"])


def _class(module: str, name: str, members: str = "") -> str:
    lines = [f".. autoclass:: {module}.{name}", f"   :members: {members}".rstrip()]
    if name == "Admin":
        lines.append("   :inherited-members:")
    return _lines(lines)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
