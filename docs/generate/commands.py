"""The command line, from the tables that its parsers are made of."""

from collections.abc import Iterable

from generate.markdown import code, entry, facts, slug
from semel.cli.__main__ import COMMANDS, command_of
from semel.cli.commands import Action, CommandTable, Option
from semel.cli.exits import Exit

_INTRODUCTION = """\
# Commands

`semel COMMAND --help` says the same in your terminal.
[The command line](../guides/command-line.md) is the guide to it.

## Exit codes

All commands share them.

| code | meaning |
|---|---|
"""


def page() -> str:
    exits = "".join(f"| {exit.value} | {exit.meaning} |\n" for exit in Exit)
    return (
        _INTRODUCTION
        + exits
        + "\n"
        + "\n".join(_command(name, words) for name, words in COMMANDS.items())
    )


def _command(name: str, words: str) -> str:
    command = command_of(name)
    parts = [f"## semel {name}\n\n{_sentence(words)}\n", *_entries(name, command.options)]
    parts += [_action(name, action) for action in command.actions]
    if command.common:
        parts.append("Before or behind each of these actions may stand:\n")
        parts += _entries(name, command.common)
    return "\n".join([*parts, *_more(command)])


def _action(command: str, action: Action) -> str:
    place = f"{command} {action.name}"
    heading = f"### semel {place}\n\n{_sentence(action.help)}\n"
    return "\n".join([heading, *_entries(place, action.options)])


def _more(command: CommandTable) -> Iterable[str]:
    if command.notes:
        yield f"{command.notes}\n"
    if command.examples:
        width = max(map(len, command.examples))
        lines = [f"{line:<{width}}   # {words}" for line, words in command.examples.items()]
        yield "\n".join(["```sh", *lines, "```\n"])


def _entries(place: str, options: Iterable[Option]) -> list[str]:
    return [
        entry(_written(option), _help(option), anchor=slug(f"{place} {option.flags[-1]}"))
        for option in options
    ]


def _written(option: Option) -> str:
    """As one types it: `-b, --bootstrap-servers HOST:PORT`."""
    if not option.is_flag:
        return f"{option.names.upper()} …" if option.repeated else option.names.upper()
    value = "" if option.value is None else f" {option.value}"
    return ", ".join(option.flags) + value


def _help(option: Option) -> str:
    choices = ", ".join(map(code, option.choices)) if option.choices else ""
    shown = not option.is_switch and option.default is not None
    default = f"default {code(str(option.default))}" if shown else ""
    return facts(_sentence(option.help), choices, default)


def _sentence(words: str) -> str:
    words = words.replace("\\", "\\\\")  # Markdown has a meaning of its own for it
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
