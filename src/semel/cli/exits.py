"""The exit codes that all commands share, and the error that a command ends with."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """`docs/guides/command-line.md` shows this table."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        exit = int.__new__(cls, code)
        exit._value_ = code
        exit.meaning = meaning
        return exit

    DONE = 0, "It is done. A command that runs until it is stopped was stopped."
    FAILED = 1, "It was tried and did not work: the cluster refused, or a disk, a port or a file."
    USAGE = 2, "The command line or a setting is wrong, or an extra is missing. Nothing was done."
    UNREACHABLE = 3, "No broker answered in time. The same command may work later."
    ANOMALIES = 4, "An audit came to its end, and found anomalies."
    INTERRUPTED = 130, "Ctrl-C or SIGTERM stopped it before it was done."


class CommandError(Exception):
    """What went wrong, in a sentence for a person at a terminal."""

    def __init__(self, text: str, exit: Exit = Exit.FAILED) -> None:
        super().__init__(text)
        self.exit = exit


def usage(text: str) -> CommandError:
    return CommandError(text, Exit.USAGE)
