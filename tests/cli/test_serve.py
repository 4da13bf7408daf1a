"""`semel serve` as a process: what it prints, refuses and survives."""

import json
import re
import signal
import socket
import subprocess
import sys

import pytest
from confluent_kafka.admin import AdminClient, NewTopic


class Served:
    """A broker process, and the address that it printed."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "semel", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.first_line = self.process.stdout.readline()
        found = re.search(r"listening on (\S+:\d+); its data is in (\S+)\.$", self.first_line)
        self.address, self.data = found.groups() if found else (None, None)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address})

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(how)
        out, err = self.process.communicate()
        return self.process.returncode, out, err


@pytest.fixture
def serve():
    """Starts processes that are gone after the test."""
    started = []

    def start(*arguments: str, **options: dict[str, str]) -> Served:
        started.append(Served(*arguments, **options))
        return started[-1]

    yield start
    for served in started:
        served.process.kill()
        served.process.communicate()


def test_it_says_where_it_listens_and_what_to_try_and_that_works(serve, tmp_path):
    served = serve("--data", str(tmp_path / "data"), "--port", "0")
    assert served.data == str(tmp_path / "data")
    lines = [served.first_line]
    while not lines[-1].startswith("Stop it"):
        lines.append(served.process.stdout.readline())
    command = re.search(r'    python -c "(.*?)"\n', "".join(lines), re.DOTALL).group(1)
    tried = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert tried.stdout == "['greetings']\n", tried.stderr


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(serve, tmp_path, how):
    served = serve("--data", str(tmp_path), "--port", "0")
    with socket.create_connection(served.address.rsplit(":", 1)) as idle:
        code, out, err = served.stop(how)
        assert idle.recv(1) == b""
    assert code == 0
    assert "Stopping" in out
    assert err == ""


def test_topics_survive_a_kill(serve, tmp_path):
    served = serve("--data", str(tmp_path), "--port", "0")
    admin = served.admin()
    admin.create_topics([NewTopic("kept", 3)])["kept"].result()
    served.stop(signal.SIGKILL)
    again = serve("--data", str(tmp_path), "--port", "0")
    admin = again.admin()
    topics = admin.list_topics(timeout=10).topics
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {"kept": 3}


def test_a_second_broker_on_the_same_directory_is_refused_in_one_sentence(serve, tmp_path):
    first = serve("--data", str(tmp_path), "--port", "0")
    second = serve("--data", str(tmp_path), "--port", "0")
    _, err = second.process.communicate()
    assert second.process.returncode == 2
    assert err == (
        f"semel: The data directory {tmp_path} is in use by another broker "
        f"(process {first.process.pid}): stop that one, or give this one a directory of its own.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "log.retenton.ms=1"], "Unknown setting name: log.retenton.ms (did you mean"),
        (["--set", "num.partitions=0"], "num.partitions: Value must be at least 1"),
        (["--set", "num.partitions"], "name=value"),
        (["--config", "no-such.toml"], "Cannot read no-such.toml"),
        (["--set", "listeners=SSL://:1"], "only PLAINTEXT is allowed"),
    ],
)
def test_a_bad_setting_ends_it_with_a_sentence(serve, tmp_path, arguments, says):
    refused = serve("--data", str(tmp_path), *arguments)
    _, err = refused.process.communicate()
    assert refused.process.returncode == 2
    assert err.startswith("semel: ")
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_port_that_is_taken_ends_it_with_a_sentence(serve, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = serve("--data", str(tmp_path), "--port", str(port))
        _, err = refused.process.communicate()
    assert refused.process.returncode == 1
    assert err.startswith("semel: cannot start: ")
    assert len(err.splitlines()) == 1


def test_settings_come_from_file_environment_and_flags(serve, tmp_path):
    file = tmp_path / "semel.toml"
    file.write_text("num.partitions = 2\nlog.retention.ms = 5\n")
    served = serve(
        *("--data", str(tmp_path / "data"), "--port", "0", "--config", str(file)),
        *("--set", "log.segment.bytes=2000000"),
        environment={"SEMEL_NUM_PARTITIONS": "4"},
    )
    admin = served.admin()
    admin.create_topics([NewTopic("t", -1)])["t"].result()
    assert len(admin.list_topics(timeout=10).topics["t"].partitions) == 4


@pytest.mark.parametrize("line_format", ["logfmt", "json"])
def test_log_lines_are_structured_and_silent_unless_asked(serve, tmp_path, line_format):
    flags = ("--log-level", "info", "--log-format", line_format)
    served = serve("--data", str(tmp_path), "--port", "0", *flags)
    _, _, err = served.stop()
    first = next(line for line in err.splitlines() if "listening" in line)
    if line_format == "json":
        fields = json.loads(first)
        assert (fields["level"], fields["part"], fields["msg"]) == ("info", "broker", "listening")
        assert fields["address"] == served.address
    else:
        assert re.match(r"time=\S+Z level=info part=broker msg=listening address=", first)


def test_help_and_version_are_quick_and_complete():
    shown = subprocess.run([sys.executable, "-m", "semel"], capture_output=True, text=True)
    assert "serve" in shown.stdout
    version = subprocess.run(
        [sys.executable, "-m", "semel", "--version"], capture_output=True, text=True
    )
    assert re.fullmatch(r"semel \d+\.\d+\.\d+\n", version.stdout)
