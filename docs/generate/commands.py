"""The command line, from the parsers that read it."""

import argparse
from collections.abc import Iterator

from generate.markdown import code, entry, facts
from semel.cli.__main__ import COMMANDS, command_parser

_INTRODUCTION = """\
# Command line

`semel COMMAND --help` says the same in your terminal.

"""
# What argparse adds by itself.
_ALWAYS = (argparse._HelpAction, argparse._SubParsersAction)


def page() -> str:
    return _INTRODUCTION + "\n".join(_command(name, words) for name, words in COMMANDS.items())


def _command(name: str, words: str) -> str:
    parser = command_parser(name)
    parts = [f"## semel {name}\n\n{_sentence(words)}\n", *_options(parser, name)]
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    for chosen in actions:
        helps = {each.dest: each.help or "" for each in chosen._choices_actions}
        common = _named(parser)
        for action, its_parser in chosen.choices.items():
            parts.append(f"### semel {name} {action}\n\n{_sentence(helps.get(action, ''))}\n")
            parts += _options(its_parser, f"{name} {action}", left_out=common)
    return "\n".join(parts)


def _options(
    parser: argparse.ArgumentParser, place: str, left_out: frozenset[str] = frozenset()
) -> Iterator[str]:
    for action in parser._actions:
        names = ", ".join(action.option_strings) or action.dest
        if isinstance(action, _ALWAYS) or names in left_out:
            continue
        yield entry(_written(action), _help(action), anchor=f"{place} {names}".replace(" ", "-"))


def _named(parser: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(", ".join(action.option_strings) for action in parser._actions)


def _written(action: argparse.Action) -> str:
    """As one types it: `-b, --bootstrap HOST:PORT`."""
    if not action.option_strings:
        name = str(action.metavar or action.dest).upper()
        return f"{name} …" if action.nargs in ("+", "*") else name
    takes = action.nargs != 0
    value = action.metavar or (None if action.choices else action.dest.upper())
    choices = "|".join(map(str, action.choices)) if action.choices else ""
    return ", ".join(action.option_strings) + (f" {value or choices}" if takes else "")


def _help(action: argparse.Action) -> str:
    words = (action.help or "").replace("%%", "%")
    default = action.default
    unsaid = default in (None, argparse.SUPPRESS, False, [], -1) or "default" in words
    return facts(_sentence(words), "" if unsaid else f"default {code(str(default))}") or "\u2014"


def _sentence(words: str) -> str:
    words = words.strip()
    return f"{words[0].upper()}{words[1:].rstrip('.')}." if words else ""
