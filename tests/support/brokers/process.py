"""A Semel broker in a process of its own: to be killed, restarted and measured.

with SemelProcess() as broker:
    broker.kill()      # SIGKILL: nothing is flushed, nothing is said
    broker.start()     # the same port, the same data
"""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests.support.brokers.ports import free_port

START_TIMEOUT_S = 30


class SemelProcess:
    """`settings` are Kafka's names, as `semel serve --set name=value` takes them. With
    `own_session` it is a stranger to the terminal, and to the kernel's scheduler, as a service."""

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        data: Path | None = None,
        flags: tuple[str, ...] = (),
        own_session: bool = False,
    ) -> None:
        self.settings = settings or {}
        self.flags = flags
        self.own_session = own_session
        self.port = free_port()
        self._scratch = Path(tempfile.mkdtemp(prefix="semel-"))
        self.data = data or self._scratch / "data"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker is not running"
        return self.process.pid

    def __enter__(self) -> "SemelProcess":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def start(self) -> None:
        """Start (again) on the same port and data, and wait until it listens."""
        command = [sys.executable, "-m", "semel.cli", "serve", "--data", str(self.data)]
        command += self.flags
        if "listeners" not in self.settings:
            command += ["--port", str(self.port)]
        command += [f"--set={name}={value}" for name, value in self.settings.items()]
        with (self._scratch / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=self.own_session
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not start:\n{self.log()[-4000:]}")
            time.sleep(0.01)

    def stop(self) -> int:
        """SIGTERM: drain and stop cleanly; the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        return self._end(signal.SIGKILL)

    def log(self) -> str:
        return (self._scratch / "broker.log").read_text(errors="replace")

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(START_TIMEOUT_S)
        self.process = None
        return code

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True
