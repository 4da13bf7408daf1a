"""A broker, and the command `semel` as a user types it."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from tests.support.brokers.process import SemelProcess

Run = Callable[..., subprocess.CompletedProcess[str]]
LOCAL = ("completion", "serve", "warm")


@pytest.fixture(scope="module")
def broker() -> Iterator[SemelProcess]:
    with SemelProcess({"group.initial.rebalance.delay.ms": "0"}) as process:
        yield process


@pytest.fixture
def semel(broker: SemelProcess) -> Run:
    def run(command: str, *words: str, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
        where = ["-b", broker.bootstrap] if command not in LOCAL else []
        done = subprocess.run(
            [sys.executable, "-m", "semel.cli", command, *where, *words],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        out, err = done.stdout.decode(errors="surrogateescape"), done.stderr.decode()
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


def lines(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
