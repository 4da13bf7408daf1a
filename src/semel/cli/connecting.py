"""What every command that talks to a cluster shares: where it is, and errors in a sentence."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from semel.client import SemelError

# A person waits: say that nobody is there sooner than a program would want to hear it.
_PATIENCE_MS = 10_000


Parser = argparse.ArgumentParser | argparse._ArgumentGroup


def add_connection(parser: Parser, default: Any = None) -> None:
    parser.add_argument(
        "-b", "--bootstrap",
        default=default,
        metavar="HOST:PORT",
        help="a broker of the cluster (or SEMEL_BOOTSTRAP; default localhost:9092)",
    )  # fmt: skip
    parser.add_argument(
        "-X", "--setting",
        action="append",
        default=default,
        metavar="NAME=VALUE",
        help="a client setting, as sasl.username=me; may be repeated",
    )  # fmt: skip


def add_json(parser: Parser, default: Any = False) -> None:
    parser.add_argument(
        "--json", action="store_true", default=default, help="print JSON, one object a line"
    )


class Actions:
    """The actions of a command. Where the cluster is may be said before the action or after it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        add_connection(parser)
        add_json(parser)
        self._actions = parser.add_subparsers(dest="action", metavar="action", required=True)

    def add(self, name: str, words: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = self._actions.add_parser(
            name, help=words, description=f"{words.capitalize()}."
        )
        common = parser.add_argument_group("the cluster, and how to print")
        # What is not said after the action does not undo what was said before it.
        add_connection(common, argparse.SUPPRESS)
        add_json(common, argparse.SUPPRESS)
        return parser


def client_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings for any client: `-X` words, numbers where they look like numbers."""
    bootstrap = arguments.bootstrap or os.environ.get("SEMEL_BOOTSTRAP", "localhost:9092")
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "default.api.timeout.ms": _PATIENCE_MS,
    }
    for word in arguments.setting or ():
        name, equals, value = word.partition("=")
        if not equals:
            raise SystemExit(f"semel: -X {word}: should be NAME=VALUE")
        settings[name] = _typed(value)
    return settings


def run_client(work: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    """Runs a command; what goes wrong is one sentence on standard error."""
    try:
        return asyncio.run(work()) or 0
    except SemelError as error:
        print(f"semel: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, as `head`, has had enough
        sys.stderr.close()
        return 0


def _typed(value: str) -> Any:
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return int(value)
    except ValueError:
        return value
