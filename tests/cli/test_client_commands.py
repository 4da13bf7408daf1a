"""The commands that talk to a cluster, as a user types them."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run, lines
from tests.support.brokers.process import SemelProcess

from semel.cli.exits import Exit
from semel.client import blocking


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
    assert first["headers"] == [{"key": "from", "value": "cli"}]
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
        assert 0 <= row["open_for_ms"] < 60_000
        assert re.search(r"holder +\d+\.\d s", semel("groups", "lag", "readers").stdout)
        assert semel("transactions", "terminate", "holder").returncode == 0
        assert lines(semel("groups", "--json", "lag", "readers"))[0]["held_back"] == 0
    assert any(g["group"] == "readers" for g in lines(semel("groups", "--json", "list")))
    assert semel("groups", "delete", "readers").returncode == 0


def test_a_hanging_transaction_is_found_only_if_nobody_will_end_it(semel: Run) -> None:
    found = semel("transactions", "--json", "find-hanging", "--open-longer-than-ms", "0")
    assert lines(found) == []
    semel("topics", "create", "hanging")
    refused = semel("transactions", "abort", "hanging", "0", "12345")
    assert refused.returncode == Exit.FAILED
    assert "no open transaction in hanging-0 starts at offset 12345" in refused.stderr


@pytest.mark.parametrize(
    ("words", "exit", "says"),
    [
        (["topics", "describe", "nowhere"], Exit.FAILED, "topic 'nowhere': this broker knows no"),
        (["groups", "lag", "nowhere"], Exit.FAILED, "there is no group 'nowhere': see `semel gro"),
        (["groups", "delete", "nowhere"], Exit.FAILED, "group 'nowhere': there is no such group"),
        (["topics", "-X", "sasl.usrname=me", "list"], Exit.USAGE, "did you mean sasl_username?"),
        (["topics", "-X", "linger.ms", "list"], Exit.USAGE, "-X linger.ms: should be NAME=VALUE"),
        (["topics", "-X", "request.timeout.ms=x", "list"], Exit.USAGE, "'x'"),
        (["topics", "list", "-b", "nowhere"], Exit.USAGE, "'nowhere' should be host:port"),
        (["topics", "alter", "t"], Exit.USAGE, "say what to change"),
        (["topics", "lisst"], Exit.USAGE, "there is no action 'lisst'; did you mean list?"),
        (["topics"], Exit.USAGE, "required: action (see `semel topics --help`)"),
        (["consume"], Exit.USAGE, "required: topic (see `semel consume --help`)"),
        (["consume", "t", "-n", "0"], Exit.USAGE, "'0' should be a whole number from 1 on"),
        (["consume", "t", "-o", "then"], Exit.USAGE, "'then' is no place: give earliest, latest"),
        (["consume", "t", "-o", "@then"], Exit.USAGE, "'then' is no time: give milliseconds"),
        (["consume", "t", "-f", "%q"], Exit.USAGE, "%q means nothing: there are %t %p %o %T"),
        (["consume", "t", "-f", "a%"], Exit.USAGE, "% means nothing"),
        (["consume", "t", "-f", r"\q"], Exit.USAGE, r"\q means nothing"),
        (["produce", "t", "-H", "h"], Exit.USAGE, "'h' should be NAME=VALUE"),
        (["groups", "reset", "g"], Exit.USAGE, "give --to PLACE or --by NUMBER, one of the two"),
        (["cluster", "configs", "--broker", "9"], Exit.FAILED, "there is no broker 9 in this clu"),
        (["topics", "list", "-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=200"],
         Exit.UNREACHABLE, "(`semel serve` starts a broker; -b or SEMEL_BOOTSTRAP_SERVERS"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_its_exit_code(
    semel: Run, words: list[str], exit: Exit, says: str
) -> None:
    done = semel(*words)
    assert done.stderr.startswith("semel: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert (done.returncode, done.stdout) == (exit, "")


def test_a_command_that_is_not_there_is_told_with_the_nearest_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "semel", "topcis", "list"], capture_output=True, text=True
    )
    assert done.returncode == Exit.USAGE
    assert done.stderr == (
        "semel: there is no command 'topcis'; did you mean topics? (see `semel --help`)\n"
    )


def test_a_partition_that_is_not_there_is_said_not_to_be(semel: Run) -> None:
    semel("topics", "create", "narrow", "-p", "2")
    for command in (["consume", "narrow", "-e"], ["produce", "narrow"]):
        refused = semel(*command, "-p", "7", stdin="x\n")
        assert refused.stderr == "semel: narrow has 2 partitions, no 7\n"
        assert refused.returncode == Exit.FAILED


@pytest.mark.parametrize("more", [[], ["-e"], ["-g", "readers"]])
def test_reading_a_mistyped_topic_names_the_nearest_and_makes_none(
    semel: Run, more: list[str]
) -> None:
    """Without a word of patience: the client's own timeout would be beyond any test's."""
    semel("topics", "create", "purchases")
    patient = ("-X", "default.api.timeout.ms=3600000")
    refused = semel("consume", *patient, "purchase", *more)
    assert refused.stderr == "semel: there is no topic 'purchase'; did you mean purchases?\n"
    assert refused.returncode == Exit.FAILED
    assert "\npurchase " not in semel("topics", "list").stdout


def test_a_topic_that_is_like_no_other_is_said_not_to_be_there(semel: Run) -> None:
    refused = semel("consume", "-X", "default.api.timeout.ms=3600000", "qqqqqq")
    told = "semel: there is no topic 'qqqqqq'; `semel topics list` shows those there are\n"
    assert refused.stderr == told
    assert "qqqqqq" not in semel("topics", "list").stdout


def test_flags_may_stand_before_and_after_the_action(semel: Run, broker: SemelProcess) -> None:
    before = lines(semel("topics", "--json", "list"))
    assert lines(semel("topics", "list", "--json")) == before
    elsewhere = subprocess.run(
        [sys.executable, "-m", "semel.cli.__main__", "topics", "list", "-b", broker.bootstrap],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert elsewhere.returncode == 0


def test_a_cluster_is_measured_in_numbers(semel: Run) -> None:
    produce, consume, *transactions = lines(
        semel("bench", "--json", "-n", "500", "-s", "10", "-t", "16", "-p", "1")
    )
    for row, what in ((produce, "produce"), (consume, "consume")):
        assert (row.pop("what"), row["records"], row["bytes"]) == (what, 500, 5000)
        assert row["records_per_second"] > 0
    for row, producers in zip(transactions, (1, 16), strict=True):
        assert (row.pop("what"), row["producers"]) == ("transactions", producers)
        assert row["transactions"] == 16
        assert 0 < row["p50_ms"] <= row["p99_ms"]
    for row in (produce, consume, *transactions):
        assert all(isinstance(value, int | float) for value in row.values())


def test_numbers_and_lists_are_such_in_json(semel: Run) -> None:
    semel("topics", "create", "typed", "-p", "2")
    semel("produce", "typed", "-t", "typed", stdin="1\n")
    (described,) = lines(semel("transactions", "describe", "typed", "--json"))
    assert described["timeout_ms"] == 60_000
    assert described["partitions"] == []
    assert "1.0 s" not in semel("transactions", "describe", "typed").stdout


def test_the_cluster_is_shown_with_its_brokers(semel: Run, broker: SemelProcess) -> None:
    semel("topics", "create", "some", "-p", "3")
    (cluster,) = lines(semel("cluster", "describe", "--json"))
    (node,) = cluster["brokers"]
    assert (node["broker"], node["address"], node["is_controller"]) == (1, broker.bootstrap, True)
    assert node["leads"] >= cluster["partitions"] >= 3
    shown = semel("cluster", "describe").stdout
    assert cluster["cluster"] in shown
    assert re.search(rf"^1 +{broker.bootstrap} +yes +\d+$", shown, re.MULTILINE)


def test_settings_of_brokers_are_shown_those_that_were_changed_first(semel: Run) -> None:
    changed = lines(semel("cluster", "configs", "--json"))
    assert {
        "broker": 1, "config": "group.initial.rebalance.delay.ms", "value": "0",
        "is_default": False,
    } in changed  # fmt: skip
    retention = lines(
        semel("cluster", "configs", "--all", "--broker", "1", "--pattern", "log.retention.hours",
              "--json")
    )  # fmt: skip
    assert retention == [
        {"broker": 1, "config": "log.retention.hours", "value": "168", "is_default": True}
    ]


def test_a_long_name_is_not_cut_where_a_program_reads(semel: Run) -> None:
    name = "n" * 249
    semel("topics", "create", name)
    assert f"{name}  1 " in semel("topics", "list").stdout


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("words", "exit"),
    [
        (["consume", "stopped"], Exit.DONE),
        (["consume", "stopped", "-g", "stoppable"], Exit.DONE),
        (["consume", "stopped", "-n", "1000"], Exit.INTERRUPTED),
        (["produce", "stopped", "-t", "stopped"], Exit.INTERRUPTED),
    ],
)
def test_a_signal_ends_a_command_without_a_trace(
    semel: Run, broker: SemelProcess, words: list[str], exit: Exit, signal_number: int
) -> None:
    semel("topics", "create", "stopped")
    semel("produce", "stopped", stdin="one\n")
    running = subprocess.Popen(
        [sys.executable, "-m", "semel.cli", *words, "-b", broker.bootstrap],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    if words[0] == "consume":
        assert running.stdout.readline() == b"one\n"
    else:
        running.stdin.write(b"never\n")
        running.stdin.flush()
        while not any(
            row["state"] == "Ongoing"
            for row in lines(semel("transactions", "list", "--json", "--pattern", "stopped"))
        ):
            assert running.poll() is None
    running.send_signal(signal_number)
    # Its standard input stays open: a read from it must not keep the process.
    assert running.wait(30) == exit
    assert running.stderr.read() == b""
    running.communicate()
    if "-g" in words:
        assert lines(semel("groups", "describe", "stoppable", "--json")) == []
    if "-t" in words:
        assert "never" not in semel("consume", "stopped", "-e").stdout


def test_a_reader_that_has_had_enough_is_no_error(semel: Run, broker: SemelProcess) -> None:
    semel("topics", "create", "plenty")
    semel("produce", "plenty", stdin="line\n" * 50_000)
    for words in (["consume", "plenty", "-e"], ["cluster", "configs", "--all"]):
        running = subprocess.Popen(
            [sys.executable, "-m", "semel.cli", *words, "-b", broker.bootstrap],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(30) == Exit.DONE
        running.stderr.close()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_shell_completes_commands_and_flags(semel: Run, shell: str) -> None:
    script = semel("completion", shell).stdout
    assert "transactions) words=" in script
    assert "find-hanging" in script


def test_bash_completes_what_was_begun(semel: Run, tmp_path: Path) -> None:
    script = semel("completion", "bash").stdout
    ask = "COMP_WORDS=(semel groups re); COMP_CWORD=2; _semel; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True)
    assert done.stdout == "reset\n"


def test_fish_completes_commands_actions_and_flags_with_their_help(semel: Run) -> None:
    script = semel("completion", "fish").stdout.splitlines()
    assert "complete -c semel -n __fish_use_subcommand -a serve -d 'start a broker'" in script
    groups = "__fish_seen_subcommand_from groups"
    assert any(
        line.startswith(f"complete -c semel -n '{groups}; and not __fish_seen_subcommand_from list")
        and "-a reset -d 'move the committed offsets" in line
        for line in script
    )
    assert (
        f"complete -c semel -n '{groups}; and __fish_seen_subcommand_from reset' -l dry-run "
        "-d 'show what would change, and change nothing'"
    ) in script
    (help_of_bench,) = (line for line in script if "-a bench" in line)
    (compression,) = (line for line in script if "-l compression" in line)
    assert "-s z -l compression -r -f -a 'none gzip snappy lz4 zstd'" in compression
    # What fish would take for its own is quoted: nothing runs when the script is read.
    assert all(line.count("'") % 2 == 0 or "\\'" in line for line in script)
    assert help_of_bench.endswith("-d 'measure a cluster'")
