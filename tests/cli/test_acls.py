"""`semel acls` against a broker with an authorizer."""

import json

import pytest

from semel.broker.server import Broker
from semel.cli.__main__ import main

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture
def semel(tmp_path, capsys):
    with Broker(tmp_path, settings=SETTINGS) as broker:

        def run(*words):
            code = main(["acls", *words, "-b", broker.bootstrap_servers, "--json"])
            printed = capsys.readouterr()
            return code, [json.loads(line) for line in printed.out.splitlines()], printed.err

        yield run


def summary(rows):
    return {
        (row["principal"], row["permission"], row["operation"], row["resource"]) for row in rows
    }


def test_rules_are_added_listed_and_removed(semel):
    code, added, _ = semel("add", "User:alice", "read,describe", "topic:orders")
    assert (code, len(added)) == (0, 2)
    assert semel("add", "User:bob", "ALL", "topic:ord", "--prefix", "--deny")[0] == 0
    assert semel("add", "User:ops", "alter", "cluster")[0] == 0
    _, rows, _ = semel("list")
    assert summary(rows) == {
        ("User:alice", "allow", "read", "topic:orders"),
        ("User:alice", "allow", "describe", "topic:orders"),
        ("User:bob", "deny", "all", "topic:ord"),
        ("User:ops", "allow", "alter", "cluster:kafka-cluster"),
    }
    _, matching, _ = semel("list", "--resource", "topic:orders", "--matching")
    assert len(matching) == 3
    _, literal, _ = semel("list", "--resource", "topic:orders")
    assert len(literal) == 2
    _, removed, _ = semel("remove", "--principal", "User:alice", "--operation", "read")
    assert summary(removed) == {("User:alice", "allow", "read", "topic:orders")}
    assert semel("remove", "--principal", "User:nobody")[1] == [{"removed": 0}]
    assert len(semel("remove", "--all")[1]) == 3
    assert semel("list")[1] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "alice", "read", "topic:t"), "as User:alice"),
        (("add", "User:a", "reed", "topic:t"), "there is no operation 'reed'; known: all, read"),
        (("add", "User:a", "read", "orders"), "should be TYPE:NAME, as topic:orders; types are"),
        (("add", "User:a", "read", "topic"), "which topic? Say topic:NAME"),
        (("remove",), "say which, with --principal"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(semel, capsys, words, says):
    try:
        code, _, told = semel(*words)
    except SystemExit as ended:
        code, told = ended.code, capsys.readouterr().err
    assert code == 2
    assert says in told


def test_a_broker_without_an_authorizer_says_so(tmp_path, capsys):
    with Broker(tmp_path) as broker:
        assert main(["acls", "list", "-b", broker.bootstrap_servers]) == 1
    told = capsys.readouterr().err
    assert "SECURITY_DISABLED" in told
    assert "authorizer.class.name" in told
