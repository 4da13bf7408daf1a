"""What every command that talks to a cluster shares: where it is, and errors in a sentence."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from semel.client import ClientError


def add_connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-b", "--bootstrap",
        default=os.environ.get("SEMEL_BOOTSTRAP", "localhost:9092"),
        metavar="HOST:PORT",
        help="a broker of the cluster (or SEMEL_BOOTSTRAP; default localhost:9092)",
    )  # fmt: skip
    parser.add_argument(
        "-X", "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a client setting, as sasl.username=me; may be repeated",
    )  # fmt: skip


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")


def client_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings for any client: `-X` words, numbers where they look like numbers."""
    settings: dict[str, Any] = {"bootstrap.servers": arguments.bootstrap}
    for word in arguments.setting:
        name, equals, value = word.partition("=")
        if not equals:
            raise SystemExit(f"semel: -X {word}: should be NAME=VALUE")
        settings[name] = _typed(value)
    return settings


def run_client(work: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    """Runs a command; what goes wrong is one sentence on standard error."""
    try:
        return asyncio.run(work()) or 0
    except ClientError as error:
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
