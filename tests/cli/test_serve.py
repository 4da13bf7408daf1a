"""`semel serve` as a process: what it prints, refuses and survives."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.request import urlopen

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

    def start_message(self) -> str:
        """All of what it prints at its start."""
        lines = [self.first_line]
        while not lines[-1].startswith("Stop it"):
            lines.append(self.process.stdout.readline())
        return "".join(lines)

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
    produce, consume = re.findall(r"^    (.*)$", served.start_message(), re.MULTILINE)
    words = produce.removeprefix("echo hello | semel ").split()
    tried = subprocess.run(
        [sys.executable, "-m", "semel", *words], input="hello\n", capture_output=True, text=True
    )
    assert tried.returncode == 0, tried.stderr
    words = consume.removeprefix("semel ").split()
    read = subprocess.run([sys.executable, "-m", "semel", *words], capture_output=True, text=True)
    assert read.stdout == "hello\n", read.stderr


def test_listening_everywhere_is_said_and_so_is_what_that_means(serve, tmp_path):
    served = serve("--data", str(tmp_path), "--host", "0.0.0.0", "--port", "0")
    port = served.address.rpartition(":")[2]
    assert served.address == f"0.0.0.0:{port}"
    message = served.start_message()
    assert (
        f"That is every address of this machine: clients elsewhere use its name, those here "
        f"127.0.0.1:{port}." in message
    )
    assert "Whoever reaches it may read and write" in message
    assert f"produce -b 127.0.0.1:{port} greetings" in message
    topics = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=10)
    assert [(node.host, node.port) for node in topics.brokers.values()] == [
        ("127.0.0.1", int(port))
    ]


def test_what_clients_are_told_and_where_metrics_are_is_said(serve, tmp_path):
    told = "advertised.listeners=PLAINTEXT://kafka.example:1234"
    served = serve("--data", str(tmp_path), "--port", "0", "--set", told, "--metrics-port", "0")
    message = served.start_message()
    assert "Clients are told to connect to kafka.example:1234." in message
    metrics = re.search(r"Metrics for Prometheus are at (\S+)\.\n", message)
    assert metrics is not None
    with urlopen(metrics[1]) as page:
        assert b"semel_last_stable_offset_lag" in page.read()


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
    assert second.process.returncode == 1
    assert err == (
        f"semel: The data directory {tmp_path} is in use by another broker "
        f"(process {first.process.pid}): stop that one, or give this one a directory of its own.\n"
    )


SSL = "listeners=SSL://127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "log.retenton.ms=1"], "Unknown setting name: log.retenton.ms (did you mean"),
        (["--set", "num.partitions=0"], "num.partitions: Value must be at least 1"),
        (["--set", "num.partitions"], "name=value"),
        (["--config", "no-such.toml"], "Cannot read no-such.toml"),
        (["--set", SSL], "a listener with TLS needs a key and a certificate"),
        (["--set", SSL, "--port", "0"], "--port and --set listeners=… say the same: give one"),
        (["--set", SSL, "--host", "::"], "--host and --set listeners=… say the same: give one"),
        (["--set", "log.dir=elsewhere"], "--data and --set log.dir=… say the same: give one"),
        (["--port", "99999"], "'99999' should be a whole number from 0 to 65535"),
        (["--metrics-port", "-1"], "'-1' should be a whole number from 0 to 65535"),
        (["--log-level", "loud"], "there is no LEVEL 'loud'; known: debug, info, warning, error"),
    ],
)
def test_a_bad_setting_ends_it_with_a_sentence(serve, tmp_path, arguments, says):
    refused = serve("--data", str(tmp_path / "data"), *arguments)
    _, err = refused.process.communicate()
    assert refused.process.returncode == 2
    assert err.startswith("semel: ")
    assert says in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_ends_it_with_a_sentence(serve, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = serve("--data", str(tmp_path), "--port", str(port))
        _, err = refused.process.communicate()
    assert refused.process.returncode == 1
    assert err == (
        f"semel: Cannot listen on 127.0.0.1:{port}: address already in use: stop the program that "
        "listens there, or choose another port (port 0 takes a free one).\n"
    )


def test_what_cannot_be_a_data_directory_ends_it_with_a_sentence(serve, tmp_path):
    file = tmp_path / "file"
    file.touch()
    of_others = tmp_path / "others"
    (of_others / "orders-0").mkdir(parents=True)
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "semel.format").write_text("1000000\n")
    for data, says in (
        (file, "there is a file where a directory should be: give another directory"),
        (of_others, "is not empty (orders-0 is in it) and no data directory of Semel"),
        (newer, "has format 1000000 and this version of Semel"),
    ):
        refused = serve("--data", str(data), "--port", "0")
        _, err = refused.process.communicate()
        assert refused.process.returncode == 1
        assert says in err
        assert len(err.splitlines()) == 1


def test_variables_of_the_other_commands_do_not_disturb_it(serve, tmp_path):
    names = {"SEMEL_BOOTSTRAP_SERVERS": "localhost:1", "SEMEL_CACHE": str(tmp_path / "cache")}
    served = serve("--data", str(tmp_path / "data"), "--port", "0", environment=os.environ | names)
    assert served.address is not None


def test_a_listener_from_elsewhere_keeps_its_protocol_when_a_flag_says_the_port(serve, tmp_path):
    def start(listener: str) -> Served:
        names = {"SEMEL_BROKER_LISTENERS": listener}
        data = ("--data", str(tmp_path / "data"))
        return serve(*data, "--port", "0", environment=os.environ | names)

    refused = start("SSL://127.0.0.1:9093")
    _, err = refused.process.communicate()
    assert refused.process.returncode == 2
    assert "a listener with TLS needs a key and a certificate" in err
    assert start("PLAINTEXT://localhost:1").address.startswith("localhost:")


def test_settings_come_from_file_environment_and_flags(serve, tmp_path):
    file = tmp_path / "semel.toml"
    file.write_text("num.partitions = 2\nlog.retention.ms = 5\n")
    served = serve(
        *("--data", str(tmp_path / "data"), "--port", "0", "--config", str(file)),
        *("--set", "log.segment.bytes=2000000"),
        environment=os.environ | {"SEMEL_BROKER_NUM_PARTITIONS": "4"},
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
