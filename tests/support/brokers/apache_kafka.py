"""A real Apache Kafka on this machine, as the reference that nobody here wrote.

The jars come from Maven Central by name (once, into the user's cache directory); a broker is one
process in KRaft mode on a free port and in a temporary directory:

    with ApacheKafka() as kafka:
        print(kafka.bootstrap)

Kafka's own command-line tools run from the same jars: see `kafka_tool`.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType

from tests.support.brokers.ports import free_port

KAFKA_VERSION = "4.3.1"
LOG4J_VERSION = "2.25.3"  # kafka brings slf4j 1.7, which wants the slf4j-impl binding of log4j
START_TIMEOUT_S = 90

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>semel</groupId><artifactId>reference</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{KAFKA_VERSION}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>{LOG4J_VERSION}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-core</artifactId>
      <version>{LOG4J_VERSION}</version></dependency>
  </dependencies>
</project>
"""

_LOG4J = """status = error
rootLogger.level = {level}
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = {target}
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %-5p %c - %m%n
"""

_SERVER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class ApacheKafkaUnavailable(RuntimeError):
    """There is no Java or no Maven here, so the reference broker cannot be had."""


def kafka_classpath() -> str:
    """The class path of Kafka's broker and tools; fetched by Maven on first use."""
    jars = _cache_directory() / f"apache-kafka-{KAFKA_VERSION}"
    if not (jars / "complete").exists():
        _fetch_jars(jars)
    return f"{jars}/*"


def kafka_tool(
    main_class: str,
    *arguments: str,
    stdin: str | None = None,
    timeout_s: float = 60,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command-line tools and return what it printed."""
    with tempfile.TemporaryDirectory(prefix="kafka-tool-") as scratch:
        command = [*_java(Path(scratch), "error", heap="256m"), main_class, *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    if check and done.returncode != 0:
        raise RuntimeError(
            f"{main_class} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}"
        )
    return done


class ApacheKafka:
    """One Apache Kafka node; `settings` override or add lines of its server.properties, `features`
    are the levels it is made with. `own_session` as for `SemelProcess`."""

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        heap: str = "512m",
        own_session: bool = False,
        features: dict[str, int] | None = None,
    ) -> None:
        self.settings = settings or {}
        self.features = features or {}
        self.heap = heap
        self.own_session = own_session
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="apache-kafka-"))
        # As in Kafka's Uuid, none begins with a dash: its tools would take it for an option.
        self.cluster_id = "A" + urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> "ApacheKafka":
        try:
            self.format()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Start (again) on the same port and data, and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        log = (self.directory / "server.log").open("ab")
        command = [*_java(self.directory, "info", self.heap), "kafka.Kafka", str(self._properties)]
        with log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=self.own_session
            )

    def wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if (
                self.process is None
                or self.process.poll() is not None
                or time.monotonic() > deadline
            ):
                raise RuntimeError(f"Apache Kafka did not start:\n{self.log()[-4000:]}")
            time.sleep(0.1)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the process at once (or by `how`), leaving its data for another `start`."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()
        self.process = None

    def log(self) -> str:
        return (self.directory / "server.log").read_text(errors="replace")

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def format(self) -> None:
        """Write its settings and an empty data directory."""
        text = _SERVER.format(
            port=self.port, controller_port=free_port(), data=self.directory / "data"
        )
        text += "".join(f"{name}={value}\n" for name, value in self.settings.items())
        self._properties.write_text(text)
        kafka_tool(
            "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(self._properties),
            *(f"--feature={name}={level}" for name, level in self.features.items()),
        )  # fmt: skip

    def _answers(self) -> bool:
        if "Kafka Server started" not in self.log():
            return False
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def _cache_directory() -> Path:
    base = os.environ.get("SEMEL_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "semel"


def _fetch_jars(jars: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ApacheKafkaUnavailable("Apache Kafka's jars are fetched by Maven: install mvn")
    jars.parent.mkdir(parents=True, exist_ok=True)
    # Fetched beside and renamed whole: an interrupted download is never taken for a complete one.
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=jars.parent) as scratch:
        (Path(scratch) / "pom.xml").write_text(_POM)
        target = Path(scratch) / "lib"
        subprocess.run(
            [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime",
             f"-DoutputDirectory={target}"],
            cwd=scratch, check=True,
        )  # fmt: skip
        (target / "complete").touch()
        shutil.rmtree(jars, ignore_errors=True)
        target.rename(jars)


def _java(scratch: Path, level: str, heap: str) -> list[str]:
    java = shutil.which("java")
    if java is None:
        raise ApacheKafkaUnavailable("Apache Kafka needs Java 17 or newer: install a JRE")
    config = scratch / "log4j2.properties"
    target = "SYSTEM_OUT" if level == "info" else "SYSTEM_ERR"
    config.write_text(_LOG4J.format(level=level, target=target))
    return [
        java, f"-Xmx{heap}", f"-Xms{heap}", "-XX:+UseG1GC",
        f"-Dlog4j2.configurationFile={config}", "-cp", kafka_classpath(),
    ]  # fmt: skip
