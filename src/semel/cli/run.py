"""`semel run -- COMMAND`: a broker for as long as a command runs, whatever language that is in."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from semel.broker.server import Broker
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import from_flags
from semel.broker.start_failures import CannotStart
from semel.cli.commands import CommandTable, Option
from semel.cli.exits import CommandError, usage

#: Where clients look for the address: by the name that is usual, and by ours.
VARIABLES = ("KAFKA_BOOTSTRAP_SERVERS", "SEMEL_BOOTSTRAP_SERVERS")
#: Passed on to the command.
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
#: Which a terminal sends to the command, too.
OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
KILLED_BY = 128  # and the signal's number: as a shell tells it


def run(arguments: argparse.Namespace) -> int:
    try:
        broker = Broker(arguments.data, settings=from_flags(arguments.set or ()))
        with broker:
            code = _run(arguments.words, broker.bootstrap_servers)
    except BadSetting as problem:
        raise usage(str(problem)) from None
    except CannotStart as problem:
        raise CommandError(str(problem)) from None
    return code if code >= 0 else KILLED_BY - code


def _run(words: list[str], address: str) -> int:
    """The command's exit code; negative is the signal that ended it."""
    environment = {**os.environ, **dict.fromkeys(VARIABLES, address)}
    try:
        child = subprocess.Popen(words, env=environment)
    except FileNotFoundError:
        raise usage(f"there is no command {words[0]!r}") from None
    except OSError as problem:
        raise usage(f"{words[0]} cannot be run: {problem.strerror}") from None
    with _passing_signals_on(child):
        return child.wait()


@contextmanager
def _passing_signals_on(child: subprocess.Popen[bytes]) -> Iterator[None]:
    def pass_on(number: int, frame: FrameType | None) -> None:
        if not (number in OF_TERMINALS and _terminal_tells_child()):
            child.send_signal(number)

    usual = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def _terminal_tells_child() -> bool:
    """Whether we stand in the foreground of a terminal: its Ctrl-C goes to the command as well,
    for which two of them would mean more than one."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):  # no terminal, or no standard input at all
        return False


COMMAND = CommandTable(
    run=run,
    options=(
        Option("--data", "where everything is kept (default: a temporary directory that is removed "
               "in the end)", value="DIR"),
        Option("--set", "a setting of the broker by Kafka's name, as num.partitions=3; may be "
               "repeated", value="NAME=VALUE", repeated=True),
        Option("words", "the command, behind --", value="COMMAND", repeated=True),
    ),
    notes="The command finds the broker's address in KAFKA_BOOTSTRAP_SERVERS, and in "
    "SEMEL_BOOTSTRAP_SERVERS.\nSignals are passed on to it. Its exit code is ours; if a signal "
    "ended it, 128 and the signal's number.",
    examples={
        "semel run -- pytest": "tests with a broker of their own",
        "semel run --set num.partitions=3 -- go test ./...": "in any language",
        "semel run -- sh -c 'echo $KAFKA_BOOTSTRAP_SERVERS'": "the address of the broker",
    },
)  # fmt: skip
