"""The same job on a Spark cluster: a master and two workers, processes of their own."""

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pyspark
import pytest
from tests.support.brokers.ports import free_port

from semel.spark.sessions.java import use_java

pytestmark = [
    pytest.mark.spark,
    pytest.mark.interop,
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("spark"),
]
SPARK_HOME = Path(pyspark.__file__).parent
START_TIMEOUT_S = 120


class Standalone:
    """Spark's own cluster manager, started from the classes in the pyspark wheel."""

    def __init__(self, directory: Path) -> None:
        use_java()
        self.directory = directory
        self.url = f"spark://127.0.0.1:{free_port()}"
        self._processes: list[subprocess.Popen] = []

    def __enter__(self):
        try:
            self._start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start_all(self) -> None:
        port = self.url.rpartition(":")[2]
        self._start("master.Master", "--port", port, until="I have been elected leader")
        for number in range(2):
            work = self.directory / f"work-{number}"
            self._start(
                "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(work),
                self.url, until="Successfully registered with master",
            )  # fmt: skip

    def __exit__(self, *_) -> None:
        for session in self.sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)
        for process in self._processes:
            process.wait()

    @property
    def sessions(self) -> list[int]:
        return [process.pid for process in self._processes]

    def _start(self, name: str, *arguments: str, until: str) -> None:
        path = self.directory / f"{len(self._processes)}-{name}.log"
        settings = {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # The only port that would not be a free one.
            "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",
        }
        with path.open("wb") as log:
            process = subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}",
                 "--host", "127.0.0.1", "--webui-port", "0", *arguments],
                stdout=log, stderr=log, start_new_session=True, env={**os.environ, **settings},
            )  # fmt: skip
        self._processes.append(process)
        deadline = time.monotonic() + START_TIMEOUT_S
        while until not in path.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{name} did not start:\n{path.read_text()}")
            time.sleep(0.1)


def test_a_cluster_loses_an_executor_and_no_row(kafka, lines, run_driver, plan, tmp_path):
    for _ in range(3):
        lines.add(1200, width=4000)
    events = tmp_path / "events"
    events.mkdir()
    with Standalone(tmp_path) as cluster:
        done = run_driver(
            **plan,
            master=cluster.url,
            tasks=6,
            strike="kill executor",
            strike_at=["grant", 1, 2],
            sessions=cluster.sessions,
            events=str(events),
            spark={
                "spark__driver__host": "127.0.0.1",
                "spark__executor__memory": "512m",
                # Both executors are there before the first task: one of them can be spared.
                "spark__scheduler__minRegisteredResourcesRatio": "1.0",
                "spark__scheduler__maxRegisteredResourcesWaitingTime": "120s",
            },
        )
    assert done.returncode == 0, done.stdout
    assert kafka.values(plan["topic"]) == Counter(lines.rows)
    assert "committed 3600 rows" in done.stdout
    told = "".join(path.read_text() for path in events.rglob("*") if path.is_file())
    assert told.count('"SparkListenerExecutorAdded"') >= 2
    assert "SparkListenerExecutorRemoved" in told
