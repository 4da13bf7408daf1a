"""The command `semel`: finds the command named and runs it. One file per command in this directory.

A command's module has a `COMMAND`, its table of actions and options; it is imported only when
used. Whatever goes wrong becomes one sentence on standard error, and an exit code of `exits`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from semel import __version__
from semel.cli.commands import CommandTable, Help, Parser, fill
from semel.cli.exits import CommandError, Exit

#: Command → what it does; the module has the command's name.
COMMANDS = {
    "demo": "show an exactly-once pipeline on Spark that survives crashes",
    "pipeline": "run an exactly-once pipeline on Spark from a file",
    "serve": "start a broker",
    "run": "run a command, as your tests, with a broker of its own",
    "cluster": "the cluster, its brokers and their settings",
    "topics": "list, create, describe, alter and delete topics",
    "groups": "consumer groups, their lag, and where they stand",
    "acls": "access rules: who may do what",
    "transactions": "see transactions, find hanging ones, end them",
    "quotas": "how much users and clients may use",
    "users": "who may log in by SCRAM, and their passwords",
    "audit": "check what a cluster promises, or what lies in topics",
    "produce": "send lines of standard input",
    "consume": "print records",
    "bench": "measure a cluster",
    "warm": "compile the columnar kernels ahead of their first use",
    "completion": "print a script that completes commands in your shell",
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _terminated_as_interrupted():
            code = _run(given)
            sys.stdout.flush()
            return code
    except CommandError as problem:
        print(f"semel: {problem}", file=sys.stderr)
        return problem.exit
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OSError as problem:
        return _told(problem)


def command_of(name: str) -> CommandTable:
    """The table of one command."""
    found: CommandTable = import_module(f"semel.cli.{name}").COMMAND
    return found


def _run(given: list[str]) -> int:
    parser = _parser(named=next((word for word in given if word in COMMANDS), None))
    parsed = parser.parse_args(given)
    if parsed.command is None:
        parser.print_help()
        return Exit.USAGE
    return int(parsed.run(parsed))


def _parser(named: str | None) -> Parser:
    parser = Parser(
        prog="semel",
        description="Exactly-once streaming for Python: a Kafka-compatible broker.",
        epilog="`semel COMMAND --help` has the options and examples of a command.",
        allow_abbrev=False,
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"semel {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    for command, words in COMMANDS.items():
        description = f"{words[0].upper()}{words[1:]}."
        below = commands.add_parser(
            command, help=words, description=description, allow_abbrev=False
        )
        if command == named:
            fill(below, command_of(command))
    return parser


def _told(problem: OSError) -> int:
    """Of a failure that no command expects: nearly always of what is printed."""
    if problem.filename is None:
        # Nothing more can be written, nor shall the interpreter try to when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(problem, BrokenPipeError):  # the reader, as `head`, has had enough
        return Exit.DONE
    what = problem.filename or "the output cannot be written"
    print(f"semel: {what}: {problem.strerror or problem}", file=sys.stderr)
    return Exit.FAILED


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Who stops a command by SIGTERM finds things as cleaned up as after Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)


if __name__ == "__main__":
    raise SystemExit(main())
