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
    "demo": "show an exactly-once pipeline on Spark that survives crashes",
    "pipeline": "run an exactly-once pipeline on Spark from a file",
    "serve": "start a broker",
    "topics": "list, create, describe, alter and delete topics",
    "groups": "consumer groups, their members and their lag",
    "transactions": "see transactions, find hanging ones, end them",
    "produce": "send lines of standard input",
    "consume": "print records",
    "bench": "measure a cluster",
    "warm": "compile the columnar kernels ahead of their first use",
    "completion": "print a script that completes commands in your shell",
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
            _fill(subparser, command)
    return parser


def command_parser(command: str) -> argparse.ArgumentParser:
    """The parser of one command, for those who want to know what it takes."""
    parser = argparse.ArgumentParser(prog=f"semel {command}")
    _fill(parser, command)
    return parser


def _fill(parser: argparse.ArgumentParser, command: str) -> None:
    module = import_module(f"semel.cli.{command.replace('-', '_')}")
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)


if __name__ == "__main__":
    raise SystemExit(main())
