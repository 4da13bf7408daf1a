"""`semel completion`: a script that completes commands and flags in your shell.

eval "$(semel completion bash)"        # or zsh
semel completion fish | source
"""

import argparse
from collections.abc import Iterable, Iterator

from semel.cli.__main__ import COMMANDS, command_of
from semel.cli.commands import CommandTable, Option
from semel.cli.exits import Exit

_BASH = """_semel() {{
    local words
    case "${{COMP_WORDS[1]}}" in
{cases}
        *) words="{commands}" ;;
    esac
    [ "$COMP_CWORD" -eq 1 ] && words="{commands}"
    COMPREPLY=( $(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}") )
}}
complete -o default -F _semel semel
"""


def run(arguments: argparse.Namespace) -> int:
    print("\n".join(_SHELLS[arguments.shell]()))
    return Exit.DONE


def _bash() -> Iterator[str]:
    cases = "\n".join(
        f'        {name}) words="{" ".join(_words(command_of(name)))}" ;;' for name in COMMANDS
    )
    yield _BASH.format(cases=cases, commands=" ".join(COMMANDS)).rstrip("\n")


def _zsh() -> Iterator[str]:
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash()


def _fish() -> Iterator[str]:
    """Fish shows what each command and flag does, so it is told."""
    yield "complete -c semel -f"
    for name, words in COMMANDS.items():
        yield f"complete -c semel -n __fish_use_subcommand -a {name} -d {_quoted(words)}"
    for name in COMMANDS:
        command = command_of(name)
        here = f"__fish_seen_subcommand_from {name}"
        actions = " ".join(action.name for action in command.actions)
        for action in command.actions:
            first = _quoted(f"{here}; and not __fish_seen_subcommand_from {actions}")
            yield f"complete -c semel -n {first} -a {action.name} -d {_quoted(action.help)}"
            there = f"{here}; and __fish_seen_subcommand_from {action.name}"
            yield from _fish_flags(there, action.options)
        yield from _fish_flags(here, command.all_options)


def _fish_flags(condition: str, options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        if not option.is_flag:
            continue
        names = " ".join(
            f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
        )
        # -r: a value follows; -F: which may be a file.
        value = "" if option.is_switch else " -r"
        if option.choices:
            value += f" -f -a {_quoted(' '.join(option.choices))}"
        elif option.value in ("FILE", "DIR"):
            value += " -F"
        yield (
            f"complete -c semel -n {_quoted(condition)} {names}{value} -d {_quoted(option.help)}"
        )


def _quoted(text: str) -> str:
    """As fish reads it between single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _words(command: CommandTable) -> list[str]:
    """Actions and flags of a command."""
    words = dict.fromkeys(action.name for action in command.actions)
    for options in (command.all_options, *(action.options for action in command.actions)):
        words |= dict.fromkeys(
            flag for option in options for flag in option.flags if flag.startswith("--")
        )
    return [*words, "--help"]


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}

COMMAND = CommandTable(
    run=run,
    options=(Option("shell", "the shell: bash, zsh or fish", choices=tuple(_SHELLS)),),
    examples={
        'eval "$(semel completion bash)"': "for ~/.bashrc; zsh alike",
        "semel completion fish | source": "for ~/.config/fish/config.fish",
    },
)
