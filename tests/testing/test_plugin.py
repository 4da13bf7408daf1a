"""The plugin as pytest runs it: fixtures, scopes, faults never met, what a failing test shows."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest


def run(directory: Path, *arguments: str, **files: str) -> str:
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "semel.testing.plugin"]
    options = ["-p", "no:cacheprovider", "-p", "no:asyncio", "--rootdir", str(directory)]
    done = subprocess.run(
        [*command, *options, *arguments, str(directory)],
        cwd=directory, capture_output=True, text=True, check=False, timeout=115,
    )  # fmt: skip
    return done.stdout + done.stderr


SHARED = """
import pytest

@pytest.fixture(scope="session")
def kafka_settings():
    return {"num.partitions": 4}

seen = set()

@pytest.mark.parametrize("number", [1, 2])
def test_each_has_its_own(kafka, number):
    kafka.topic("orders")
    seen.add(kafka.port)
    kafka.produce("made", "x", partition=3)

@pytest.mark.parametrize("number", [1, 2])
def test_the_module_shares(kafka_module, kafka_session, number):
    kafka_module.produce("orders", str(number))
    assert len(kafka_module.committed("orders")) == number
    assert kafka_module.port != kafka_session.port
"""

FAILING = """
import pytest
from semel.client.blocking import Producer

def test_shows_the_broker(kafka):
    producer = Producer(kafka.bootstrap_servers, client_id="shop", transactional_id="shop-1")
    producer.start()
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_and_wait("orders", b"x")
    kafka.faults.on("EndTxn").drop_reply().once()
    assert kafka.committed("orders")

def test_the_fault_is_never_met(kafka):
    kafka.faults.on("EndTxn", transactional_id="shop-1").drop_reply().once()

def test_a_fault_of_a_shared_broker_does_not_reach_the_next_test(kafka_module):
    kafka_module.faults.on("Produce").fail("NOT_LEADER_OR_FOLLOWER").always()

def test_which_sees_nothing_of_it(kafka_module):
    with Producer(kafka_module.bootstrap_servers, delivery_timeout_ms=5_000) as producer:
        producer.send_and_wait("orders", b"x")

def test_a_skip_is_a_skip(kafka):
    kafka.faults.on("EndTxn").drop_reply().once()
    pytest.skip("not here")
"""


def test_fixtures_live_as_long_as_their_names_say(tmp_path: Path) -> None:
    assert "4 passed" in run(tmp_path, test_shared=SHARED)


def test_the_scope_of_the_fixture_can_be_chosen_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    sharing = """
ports = set()

def test_one(kafka):
    ports.add(kafka.port)

def test_two(kafka):
    ports.add(kafka.port)
    assert len(ports) == 1
"""
    (tmp_path / "pytest.ini").write_text("[pytest]\nkafka_scope = module\n")
    assert "2 passed" in run(tmp_path, test_sharing=sharing)
    (tmp_path / "pytest.ini").write_text("[pytest]\nkafka_scope = modul\n")
    assert "kafka_scope is one of function, class, module" in run(tmp_path)


def test_a_failing_test_shows_its_broker_and_a_fault_never_met_fails_it(tmp_path: Path) -> None:
    printed = run(tmp_path, test_failing=FAILING)
    assert "1 passed, 1 skipped" in printed
    assert "3 failed" in printed
    assert re.search(r"shop: InitProducerId v\d+ transaction shop-1: ok", printed)
    assert re.search(r"'shop-1': Ongoing for .* in orders-0", printed)
    assert re.search(
        r"on\('EndTxn', transactional_id='shop-1'\).drop_reply\(\).once\(\), armed at "
        r".*test_failing.py:\d+, was never met: no EndTxn came; what came: nothing",
        printed,
    )
    assert "pytest_runtest_call" not in printed, "our own frames interest nobody"


@pytest.mark.slow
def test_brokers_of_xdist_workers_do_not_meet(tmp_path: Path) -> None:
    alone = """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_nobody_else_is_here(kafka_session, kafka, number):
    kafka.topic("orders")
    kafka_session.topic(f"orders-{number}")
"""
    assert "8 passed" in run(tmp_path, "-n", "2", test_alone=alone)


def test_a_run_without_the_fixture_does_not_load_the_broker(tmp_path: Path) -> None:
    nothing = """
import sys

def test_nothing():
    loaded = {name for name in sys.modules if name.startswith("semel.")}
    assert not {name for name in loaded if name.startswith(("semel.broker", "semel.client"))}
"""
    assert "1 passed" in run(tmp_path, test_nothing=nothing)


def test_pytest_finds_the_plugin_by_itself() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    [(name, module)] = project["project"]["entry-points"]["pytest11"].items()
    assert name == module, "named otherwise, `-p` of the module would load it twice"
    assert import_module(module).kafka
