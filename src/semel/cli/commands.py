"""What a command is: a table of its actions and options, from which all else is made.

Each command's module has a `COMMAND`. The parser is built from it here, shells complete from it
(`completion`), and whoever writes a reference can read it as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NoReturn

Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Option:
    """A flag (`-n --count`), or an argument without a name (`topic`).

    `value` is what a flag is followed by, as the help shows it; without one it is a switch.
    """

    names: str
    help: str
    value: str | None = None
    parse: Callable[[str], Any] = str
    default: Any = None
    choices: tuple[str, ...] = ()
    repeated: bool = False
    required: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        return tuple(self.names.split())

    @property
    def is_flag(self) -> bool:
        return self.names.startswith("-")

    @property
    def is_switch(self) -> bool:
        return self.is_flag and self.value is None

    @property
    def words(self) -> str:
        """The help, with the choices and what is taken where nothing is given."""
        more = [", ".join(self.choices)] if self.choices and self.is_flag else []
        if self.default is not None and not self.is_switch:
            more.append(f"default: {self.default}")
        return f"{self.help} ({'; '.join(more)})" if more else self.help


@dataclass(frozen=True)
class Action:
    """One of the things that a command does: `semel topics create`."""

    name: str
    help: str
    run: Run
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class CommandTable:
    """A command of `semel`. It has actions, or runs itself.

    `common` options may stand before the action or after it.
    """

    run: Run | None = None
    options: tuple[Option, ...] = ()
    common: tuple[Option, ...] = ()
    actions: tuple[Action, ...] = ()
    notes: str = ""
    examples: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_options(self) -> tuple[Option, ...]:
        return self.options + self.common


BOOTSTRAP = Option(
    "-b --bootstrap-servers",
    "a broker of the cluster, or several with commas between; without it SEMEL_BOOTSTRAP_SERVERS "
    "of the environment, without that localhost:9092",
    value="HOST:PORT",
)
SETTING = Option(
    "-X --setting",
    "a setting of the client, as sasl.username=me; may be repeated",
    value="NAME=VALUE",
    repeated=True,
)
CONNECTION = (BOOTSTRAP, SETTING)
JSON = Option("--json", "print JSON, one object a line")


class Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"semel: {message} (see `{self.prog} --help`)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = get_close_matches(str(value), action.choices, n=1)
            known = f"did you mean {near[0]}?" if near else f"known: {', '.join(action.choices)}"
            what = action.metavar or "/".join(action.option_strings) or action.dest
            raise argparse.ArgumentError(None, f"there is no {what} {value!r}; {known}")


class Help(argparse.RawDescriptionHelpFormatter):
    """Examples keep their lines; names of commands stand beside what they do."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)
        self._action_max_length = 16  # argparse forgets how far it indents commands


def fill(parser: argparse.ArgumentParser, command: CommandTable) -> None:
    """The options and actions of a command for its parser."""
    parser.epilog = _epilog(command)
    parser.formatter_class = Help
    for option in command.all_options:
        _add(parser, option)
    if command.run is not None:
        parser.set_defaults(run=command.run)
        return
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    for action in command.actions:
        words = f"{action.help[0].upper()}{action.help[1:]}."
        below = actions.add_parser(
            action.name,
            help=action.help,
            description=words,
            allow_abbrev=False,
            formatter_class=Help,
        )
        below.set_defaults(run=action.run)
        for option in action.options:
            _add(below, option)
        common = below.add_argument_group("the cluster, and how to print")
        for option in command.common:
            # What is not said after the action does not undo what was said before it.
            _add(common, option, argparse.SUPPRESS)


def _add(to: Any, option: Option, default: Any = None) -> None:
    given: dict[str, Any] = {"help": option.words.replace("%", "%%"), "default": option.default}
    if default is not None:
        given["default"] = default
    if option.is_switch:
        given["action"] = "store_true"
        given["default"] = default or False
    else:
        given["type"] = option.parse
        if option.choices:
            given["choices"] = option.choices
        if option.value is not None:
            given["metavar"] = option.value
    if option.is_flag:
        if option.required:
            given["required"] = True
        if option.repeated:
            given["action"] = "append"
    elif option.repeated:
        given["nargs"] = "+"
    to.add_argument(*option.flags, **given)


def _epilog(command: CommandTable) -> str:
    parts = [command.notes.strip()] if command.notes else []
    if command.examples:
        width = max(map(len, command.examples))
        lines = [f"  {line:<{width}}   {words}" for line, words in command.examples.items()]
        parts.append("\n".join(["examples:", *lines]))
    return "\n\n".join(parts)


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Parses a number within bounds; what is none is told with the bounds."""
    bounds = f"from {least} on" if most is None else f"from {least} to {most}"

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{text!r} should be a whole number {bounds}")
        return number

    return parse


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE as the two."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} should be NAME=VALUE")
    return name, value
