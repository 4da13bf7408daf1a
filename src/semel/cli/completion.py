"""`semel completion`: a script that completes commands and flags in your shell.

eval "$(semel completion bash)"        # or zsh
"""

import argparse

from semel.cli.__main__ import COMMANDS, command_parser

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh"])


def run(arguments: argparse.Namespace) -> int:
    cases = "\n".join(
        f'        {command}) words="{" ".join(_words(command_parser(command)))}" ;;'
        for command in COMMANDS
    )
    if arguments.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_BASH.format(cases=cases, commands=" ".join(COMMANDS)), end="")
    return 0


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """Flags and actions, asked of the parser itself: nothing to keep up to date here."""
    words: dict[str, None] = {}
    for action in parser._actions:
        words |= dict.fromkeys(flag for flag in action.option_strings if flag.startswith("--"))
        if isinstance(action, argparse._SubParsersAction):
            words |= dict.fromkeys(action.choices)
            for choice in action.choices.values():
                words |= dict.fromkeys(_words(choice))
    return list(words)
