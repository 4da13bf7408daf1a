"""The snippets of the documentation as programs: which there are, and how a test runs them.

A snippet runs as it stands, in a directory of its own. `localhost:9092` in it, and `semel` without
an address, mean a broker that the test starts. A comment right above a block says more:

    <!-- not run: the reason -->     it is not run
    <!-- continues -->               it goes on where the page's last block of its language ended
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.markdown import Block, blocks, pages

LOCAL = "localhost:9092"
NOT_RUN = "not run:"
RUN = ("python", "sh")
#: Shown, not run: what a program prints, an error's text, data; diagrams; the site's own order.
SHOWN = ("text", "json", "toml", "mermaid", "{toctree}")
_SERVE = re.compile(r"^semel serve\b(?P<arguments>[^#\n]*)", re.MULTILINE)
_TIMEOUT_S = 110
#: The plugin is named, because an older install of this checkout may not tell pytest of it.
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-p", "semel.testing.plugin"]


@dataclass(frozen=True)
class Snippet:
    block: Block
    program: str

    @property
    def needs_spark(self) -> bool:
        return "semel.spark" in self.program or "semel pipeline run" in self.program


def snippets(language: str) -> Iterator[Snippet]:
    """Those of the language that run."""
    for page in pages():
        before = ""
        for block in blocks(page):
            if block.language != language or block.comment.startswith(NOT_RUN):
                continue
            program = before + block.text if block.comment == "continues" else block.text
            before = program
            yield Snippet(block, program)


def run_python(snippet: Snippet, directory: Path, bootstrap: str) -> str:
    """What it prints; fails as it does."""
    program = snippet.program.replace(LOCAL, bootstrap)
    (directory / "snippet.py").write_text(program)
    by = PYTEST if "def test_" in program and "unittest" not in program else []
    return _finished([sys.executable, *by, "snippet.py"], directory, dict(os.environ))


def run_shell(snippet: Snippet, directory: Path, bootstrap: str) -> str:
    """The same by bash, whose first failing command ends it. A broker that it starts runs beside
    the rest of it, and is stopped at the end."""
    serving = _SERVE.search(snippet.program)
    if serving is None:
        return _bash(snippet.program, directory, bootstrap)
    words = re.sub(r"--port \d+", "--port 0", serving["arguments"]).split()
    if "--port" not in words:
        words += ["--port", "0"]
    command = [sys.executable, "-m", "semel", "serve", *words]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            address = re.search(r"listening on (\S+);", broker.stdout.readline())
            assert address is not None
            return _bash(_SERVE.sub("", snippet.program), directory, address[1])
        finally:
            broker.send_signal(signal.SIGTERM)


def _bash(program: str, directory: Path, bootstrap: str) -> str:
    tools = directory / ".bin"
    tools.mkdir()
    for name, words in {"semel": "-m semel", "python": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SEMEL_BOOTSTRAP_SERVERS": bootstrap}
    program = program.replace(LOCAL, bootstrap)
    return _finished(["bash", "-euo", "pipefail", "-c", program], directory, environment)


def _finished(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False,
        timeout=_TIMEOUT_S,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
