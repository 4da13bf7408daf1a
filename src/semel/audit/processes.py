"""The processes of the workload: started, killed, paused, resumed, and heard."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from semel.audit.worker import Job

_UNTIL_KILLED_S = 15


class WorkerProcess:
    """One life of a worker. `heard` is called with each of its lines."""

    def __init__(self, job: Job, heard: Callable[[Job, dict[str, Any]], None]) -> None:
        self.job = job
        self.ready = asyncio.Event()
        self._heard = heard
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from semel.audit.worker import main; main()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for the auditor, which then stops its workers
        )
        assert self._process.stdin is not None
        # Settings go this way, not by the command line: they may hold passwords.
        self._process.stdin.write(self.job.to_json().encode() + b"\n")
        self._listening = asyncio.create_task(self._listen(self._process))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if not line.endswith(b"\n"):
                break
            said = json.loads(line)
            if said["step"] == "ready":
                self.ready.set()
            self._heard(self.job, said)
        await process.wait()
        self.ready.set()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.returncode is not None

    async def kill(self) -> None:
        """SIGKILL, and everything heard that it said before."""
        self._signal(signal.SIGKILL)
        await self.ended()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    async def ended(self) -> None:
        if self._listening is not None:
            await asyncio.shield(self._listening)

    async def stop(self) -> None:
        """Asks it to end; kills it if it does not."""
        self.resume()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_UNTIL_KILLED_S):
                await self.ended()
        except TimeoutError:
            await self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
