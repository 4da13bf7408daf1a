"""`semel run`: a broker for as long as a command runs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PRODUCE = """
import os
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]})
producer.produce("orders", b"one", on_delivery=lambda *told: print(told[0], told[1].offset()))
producer.flush()
"""
WAIT = """
import signal, sys
signal.signal(signal.{signal}, lambda number, frame: sys.exit(40 + number))
print("ready", flush=True)
signal.pause()
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "semel", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_command_finds_the_broker_and_its_words_are_its_own() -> None:
    done = run("--set", "num.partitions=3", "--", sys.executable, "-c", PRODUCE, "--set", "--")
    assert (done.returncode, done.stdout, done.stderr) == (0, "None 0\n", "")


def test_its_exit_code_is_ours() -> None:
    assert run("--", "sh", "-c", "exit 7").returncode == 7
    assert run("--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_both_variables_have_the_address() -> None:
    done = run("--", "sh", "-c", "test $SEMEL_BOOTSTRAP_SERVERS = $KAFKA_BOOTSTRAP_SERVERS")
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_is_passed_on_and_the_command_decides(name: str) -> None:
    number = getattr(signal, name)
    waiting = [sys.executable, "-c", WAIT.format(signal=name)]
    with subprocess.Popen(
        [sys.executable, "-m", "semel", "run", "--", *waiting], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        assert running.wait(30) == 40 + number


def test_data_stays_where_it_is_told_to(tmp_path: Path) -> None:
    assert run("--data", str(tmp_path / "data"), "--", sys.executable, "-c", PRODUCE).stdout
    again = run("--data", str(tmp_path / "data"), "--", sys.executable, "-c", PRODUCE)
    assert again.stdout == "None 1\n"


def test_what_cannot_be_run_is_told_in_a_line(tmp_path: Path) -> None:
    done = run("--", "no-such-command")
    assert (done.returncode, done.stderr) == (2, "semel: there is no command 'no-such-command'\n")
    plain = tmp_path / "plain"
    plain.touch()
    assert f"{plain} cannot be run: Permission denied" in run("--", str(plain)).stderr
    assert "Unknown" in run("--set", "nonsense=1", "--", "true").stderr
    assert run().returncode == 2
    assert os.listdir(tmp_path) == ["plain"]
