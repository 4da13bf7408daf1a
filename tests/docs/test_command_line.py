"""The guide to the command line agrees with the commands' own tables."""

import re
import shlex
from pathlib import Path

import pytest

from semel.cli.__main__ import COMMANDS, command_of
from semel.cli.commands import Parser, fill
from semel.cli.exits import Exit
from semel.cli.record_format import PARTS

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "command-line.md").read_text()
_EVALUATED = re.compile(r'eval "\$\((.*?)\)"')


def typed(text: str) -> list[str]:
    """The words behind `semel` in an example: without what else a shell would read."""
    words = shlex.split(_EVALUATED.sub(r"\1", text), comments=True)
    mine = words[words.index("semel") + 1 :]
    ends = [mine.index(sign) for sign in ("|", "<") if sign in mine]
    return mine[: min(ends, default=None)]


def parse(words: list[str]) -> None:
    parser = Parser(prog=f"semel {words[0]}")
    fill(parser, command_of(words[0]))
    parser.parse_args(words[1:])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_can_be_typed(name: str) -> None:
    for example in command_of(name).examples:
        words = typed(example)
        assert words[0] == name
        parse(words)


def test_the_examples_of_the_guide_can_be_typed() -> None:
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)).replace("\\\n", " ")
    examples = [line for line in shell.splitlines() if "semel " in line]
    assert len(examples) > 8
    for example in examples:
        parse(typed(example))


def test_the_guide_has_the_exit_codes_of_the_program() -> None:
    rows = "".join(f"| {exit.value} | {exit.meaning} |\n" for exit in Exit)
    assert rows in GUIDE


def test_the_guide_names_every_part_of_a_format() -> None:
    for sign, (what, _) in PARTS.items():
        assert f"`{sign}` {what}" in GUIDE


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_for(name: str) -> None:
    command = command_of(name)
    options = [*command.all_options, *(o for action in command.actions for o in action.options)]
    assert all(option.help for option in options)
    assert all(not option.help.endswith(".") for option in options), "a line of help, no sentence"
    flags = [flag for option in command.all_options for flag in option.flags]
    assert len(flags) == len(set(flags))
