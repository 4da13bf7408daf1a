"""What every command that talks to a cluster shares: where it is, and errors in a sentence."""

import argparse
import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from semel.cli.commands import Run
from semel.cli.exits import CommandError, Exit, usage
from semel.client import Admin, RetriableError, SemelError, UnreachableError, UsageError
from semel.wire.errors import ErrorCode

# A person waits: say that nobody is there sooner than a program would want to hear it.
PATIENCE_MS = 10_000
DEFAULT_BOOTSTRAP = "localhost:9092"
_HINT = " (`semel serve` starts a broker; -b or SEMEL_BOOTSTRAP_SERVERS says where one is)"


def client_settings(arguments: argparse.Namespace, **defaults: Any) -> dict[str, Any]:
    """The settings for any client: `defaults` (dots written as underscores), then `-X` words."""
    settings: dict[str, Any] = {
        "bootstrap.servers": arguments.bootstrap_servers
        or os.environ.get("SEMEL_BOOTSTRAP_SERVERS")
        or DEFAULT_BOOTSTRAP,
        "default.api.timeout.ms": PATIENCE_MS,
    }
    settings |= {name.replace("_", "."): value for name, value in defaults.items()}
    for word in arguments.setting or ():
        name, equals, value = word.partition("=")
        if not equals:
            raise usage(f"-X {word}: should be NAME=VALUE")
        # `linger_ms` and `linger.ms` are one setting, as in the clients.
        settings[name.strip().replace("_", ".")] = value
    return settings


def run_client(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Runs what a command does with a cluster. SIGTERM ends it as Ctrl-C does: by cancelling, so
    that members leave their groups, and transactions are aborted."""

    async def stoppable() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await work()

    try:
        asyncio.run(stoppable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except SemelError as problem:
        exit = _exit_for(problem)
        hint = _HINT if exit is Exit.UNREACHABLE else ""
        raise CommandError(f"{problem}{hint}", exit) from problem
    return Exit.DONE


def with_admin(
    do: Callable[[Admin, argparse.Namespace], Coroutine[Any, Any, None]],
) -> Run:
    """An action that asks an admin client."""

    def run(arguments: argparse.Namespace) -> int:
        async def work() -> None:
            async with Admin(settings=client_settings(arguments)) as admin:
                await do(admin, arguments)

        return run_client(work)

    return run


def _exit_for(problem: SemelError) -> Exit:
    if isinstance(problem, UsageError):
        return Exit.USAGE
    if isinstance(problem, UnreachableError) or (
        isinstance(problem, RetriableError) and problem.code in _NO_ANSWER
    ):
        return Exit.UNREACHABLE
    return Exit.FAILED


_NO_ANSWER = (ErrorCode.NONE, ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
