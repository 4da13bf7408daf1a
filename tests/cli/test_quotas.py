"""`semel quotas`, against a broker."""

import json

import pytest
from tests.support.brokers.process import SemelProcess

from semel.cli.__main__ import main


@pytest.fixture(scope="module")
def broker():
    with SemelProcess() as broker:
        yield broker


@pytest.fixture
def run(broker, capsys):
    def run_command(*words):
        code = main(["quotas", *words, "-b", broker.bootstrap])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_command


def test_quotas_are_set_listed_and_removed(run):
    assert run("set", "producer_byte_rate=1024", "--user", "u", "--client-id", "<default>")[0] == 0
    _, out, _ = run("list", "--json")
    assert json.loads(out) == {
        "user": "u", "client_id": "<default>", "ip": "",
        "quota": "producer_byte_rate", "value": 1024.0,
    }  # fmt: skip
    removed = run("remove", "producer_byte_rate", "--user", "u", "--client-id", "<default>")
    assert removed[0] == 0
    assert run("list", "--json")[1] == ""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("set", "producer_byte_rate=1"), "whose?"),
        (("set", "producer_byte_rate", "--user", "u"), "NAME=NUMBER"),
        (("set", "producer_byte_rate=-1", "--user", "u"), "must be greater than 0"),
        (("set", "bytes=1", "--user", "u"), "bytes"),
    ],
)
def test_mistakes_are_told(run, words, why):
    code, _, err = run(*words)
    assert code != 0
    assert why in err
