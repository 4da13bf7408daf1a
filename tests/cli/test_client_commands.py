"""The commands that talk to a cluster, as a user types them."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from tests.support.brokers.process import SemelProcess

from semel.client import blocking

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def broker() -> Iterator[SemelProcess]:
    with SemelProcess({"group.initial.rebalance.delay.ms": "0"}) as process:
        yield process


@pytest.fixture
def semel(broker: SemelProcess) -> Run:
    def run(command: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        where = ["-b", broker.bootstrap] if command != "completion" else []
        return subprocess.run(
            [sys.executable, "-m", "semel.cli.__main__", command, *where, *words],
            input=stdin, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return run


def lines(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_topic_is_made_filled_and_read(semel: Run) -> None:
    semel("topics", "create", "orders", "-p", "2", "-c", "retention.ms=7777")
    sent = semel("produce", "orders", "-k", ":", "-H", "from=cli", stdin="a:1\nb:2\nplain\n")
    assert "3 records sent to orders" in sent.stderr
    read = semel("consume", "orders", "-e", "-f", "%k=%v (%h) 100%%")
    assert sorted(read.stdout.splitlines()) == [
        "=plain (from=cli) 100%", "a=1 (from=cli) 100%", "b=2 (from=cli) 100%",
    ]  # fmt: skip
    (first,) = lines(semel("consume", "--json", "orders", "-n", "1"))
    assert first["topic"] == "orders"
    assert first["headers"] == {"from": "cli"}
    described = lines(semel("topics", "--json", "describe", "orders"))
    assert sum(row.get("high_watermark", 0) for row in described) == 3
    assert {"config": "retention.ms", "value": "7777"} in described
    semel("topics", "alter", "orders", "-p", "3")
    (row,) = (r for r in lines(semel("topics", "--json", "list")) if r["topic"] == "orders")
    assert row["partitions"] == 3
    assert semel("topics", "delete", "orders").returncode == 0
    assert "orders" not in semel("topics", "list").stdout


def test_lines_in_a_transaction_are_committed_together(semel: Run) -> None:
    semel("topics", "create", "together")
    semel("produce", "together", "-t", "cli", stdin="1\n2\n")
    assert semel("consume", "together", "-e").stdout == "1\n2\n"
    (row,) = lines(semel("transactions", "--json", "list", "--pattern", "cli"))
    assert row["state"] == "CompleteCommit"
    (described,) = lines(semel("transactions", "--json", "describe", "cli"))
    assert described["producer_epoch"] == 1


def test_lag_names_who_holds_readers_back(semel: Run, broker: SemelProcess) -> None:
    semel("topics", "create", "held")
    semel("produce", "held", stdin="1\n2\n3\n")
    assert len(semel("consume", "held", "-g", "readers", "-n", "3").stdout.splitlines()) == 3
    with blocking.Producer(broker.bootstrap, transactional_id="holder") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("held", b"open")
        producer.flush()
        (row,) = lines(semel("groups", "--json", "lag", "readers"))
        assert (row["lag"], row["held_back"], row["held_back_by"]) == (0, 1, "holder")
        assert row["open_for"].endswith(" s")
        assert semel("transactions", "terminate", "holder").returncode == 0
        assert lines(semel("groups", "--json", "lag", "readers"))[0]["held_back"] == 0
    assert any(g["group"] == "readers" for g in lines(semel("groups", "--json", "list")))
    assert semel("groups", "delete", "readers").returncode == 0


def test_a_hanging_transaction_is_found_only_if_nobody_will_end_it(semel: Run) -> None:
    found = semel("transactions", "--json", "find-hanging", "--open-longer-than-ms", "0")
    assert lines(found) == []
    semel("topics", "create", "hanging")
    refused = semel("transactions", "abort", "hanging", "0", "12345")
    assert refused.returncode == 1
    assert "no open transaction in hanging-0 starts at offset 12345" in refused.stderr


def test_errors_are_one_sentence_and_a_failing_exit(semel: Run) -> None:
    missing = semel("topics", "describe", "nowhere")
    assert missing.returncode == 1
    assert missing.stderr.count("\n") == 1
    assert "Traceback" not in missing.stderr
    assert "there is no group 'nowhere'" in semel("groups", "lag", "nowhere").stderr
    mistyped = semel("topics", "-X", "sasl.usrname=me", "list")
    assert "did you mean sasl_username?" in mistyped.stderr


def test_a_partition_that_is_not_there_is_said_not_to_be(semel: Run) -> None:
    semel("topics", "create", "narrow", "-p", "2")
    for command in (["consume", "narrow", "-e"], ["produce", "narrow"]):
        refused = semel(*command, "-p", "7", stdin="x\n")
        assert (refused.returncode, refused.stderr) == (1, "semel: narrow has 2 partitions, no 7\n")


def test_reading_makes_no_topics(semel: Run) -> None:
    assert semel("consume", "-X", "default.api.timeout.ms=300", "mistyped", "-e").returncode == 1
    assert "mistyped" not in semel("topics", "list").stdout


def test_flags_may_stand_before_and_after_the_action(semel: Run, broker: SemelProcess) -> None:
    before = lines(semel("topics", "--json", "list"))
    assert lines(semel("topics", "list", "--json")) == before
    elsewhere = subprocess.run(
        [sys.executable, "-m", "semel.cli.__main__", "topics", "list", "-b", broker.bootstrap],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert elsewhere.returncode == 0


def test_a_cluster_is_measured(semel: Run) -> None:
    rows = lines(semel("bench", "--json", "-n", "500", "-t", "16", "-p", "1"))
    assert [row["what"] for row in rows] == [
        "produce", "consume", "transactions", "transactions, 16 producers",
    ]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_shell_completes_commands_and_flags(semel: Run, shell: str) -> None:
    script = semel("completion", shell).stdout
    assert "transactions) words=" in script
    assert "find-hanging" in script
