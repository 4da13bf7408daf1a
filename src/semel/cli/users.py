"""`semel users`: who may log in by SCRAM, and their passwords."""

import argparse
import getpass
import sys
from pathlib import Path

from semel.cli.commands import CONNECTION, JSON, Action, CommandTable, Option
from semel.cli.connecting import with_admin
from semel.cli.exits import CommandError, usage
from semel.cli.printing import show, show_one
from semel.client import Admin

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


async def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    rows = [(user.name, list(user.mechanisms)) for user in await admin.list_users()]
    show(("user", "mechanisms"), rows, as_json=arguments.json)


async def _set(admin: Admin, arguments: argparse.Namespace) -> None:
    password = _password(arguments)
    await admin.set_password(arguments.user, password, mechanism=arguments.mechanism)
    show_one({"set": arguments.user}, as_json=arguments.json)


async def _remove(admin: Admin, arguments: argparse.Namespace) -> None:
    await admin.remove_user(arguments.user, mechanism=arguments.mechanism)
    show_one({"removed": arguments.user}, as_json=arguments.json)


def _password(arguments: argparse.Namespace) -> str:
    """Never an argument: those can be read by everybody on the machine."""
    if arguments.password_file is not None:
        try:
            text: str = arguments.password_file.read_text()
        except OSError as problem:
            raise CommandError(f"{arguments.password_file}: {problem.strerror}") from None
    elif sys.stdin.isatty():
        text = getpass.getpass(f"Password of {arguments.user}: ")
        if text != getpass.getpass("Again: "):
            raise CommandError("the two are not the same: nothing was changed")
    else:
        text = sys.stdin.readline()
    password = text.rstrip("\r\n")
    if not password:
        raise usage("the password is empty")
    return password


_USER = Option("user", "the user's name")
_MECHANISM = Option("--mechanism", "by this mechanism alone", value="NAME", choices=MECHANISMS)

COMMAND = CommandTable(
    common=(*CONNECTION, JSON),
    actions=(
        Action("list", "all users, and how they may log in", with_admin(_list)),
        Action("set", "give a user a password; it is asked for, or read from standard input",
               with_admin(_set), (
            _USER,
            _MECHANISM,
            Option("--password-file", "read it from the first line of this file", value="FILE",
                   parse=Path),
        )),
        Action("remove", "let a user log in no more", with_admin(_remove), (_USER, _MECHANISM)),
    ),
    notes="The password leaves this program salted (SCRAM), and the broker keeps only what it can "
    "check it with.",
    examples={
        "semel users set alice": "asks for her password",
        "semel users set alice --password-file alice.txt": "for scripts",
        "semel users list": "who there is",
    },
)  # fmt: skip
