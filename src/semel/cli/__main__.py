"""The command `semel`: finds the command named and runs it. One file per command in this directory.

A command's module has `add_arguments(parser)` and `run(arguments) -> int`; it is imported only
when used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from semel import __version__

#: Command → what it does; the module has the command's name, with underscores.
COMMANDS = {
    "serve": "start a broker",
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(named=next((word for word in given if word in COMMANDS), None))
    parsed = parser.parse_args(given)
    if parsed.command is None:
        parser.print_help()
        return 2
    return int(parsed.run(parsed))


def _parser(named: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="semel", description="Exactly-once streaming for Python: a Kafka-compatible broker."
    )
    parser.add_argument("--version", action="version", version=f"semel {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    for command, words in COMMANDS.items():
        subparser = commands.add_parser(command, help=words, description=words.capitalize() + ".")
        if command == named:
            module = import_module(f"semel.cli.{command.replace('-', '_')}")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
