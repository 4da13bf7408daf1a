"""`semel groups reset`: where a group goes on from."""

import pytest
from tests.cli.conftest import Run, lines
from tests.support.brokers.process import SemelProcess

from semel.cli.exits import Exit
from semel.client import NewTopic, TopicPartition, blocking

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def topic(broker: SemelProcess) -> str:
    """Ten records, a second apart, in partition 1 of 2."""
    with blocking.Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("timed", 2)])
    with blocking.Producer(broker.bootstrap) as producer:
        for number in range(10):
            at = START_MS + number * 1000
            producer.send("timed", b"%d" % number, partition=1, timestamp_ms=at)
    return "timed"


@pytest.fixture
def group(topic: str, broker: SemelProcess, request: pytest.FixtureRequest) -> str:
    """A group that has read all of the topic."""
    name = request.node.name
    with blocking.Admin(broker.bootstrap) as admin:
        admin.alter_group_offsets(name, {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 10})
    return name


def offsets(semel: Run, group: str) -> list[tuple[int, int]]:
    rows = lines(semel("groups", "lag", group, "--json"))
    return [(row["partition"], row["committed"]) for row in rows]


def test_a_group_is_moved_to_a_place_within_what_is_there(
    semel: Run, topic: str, group: str
) -> None:
    before = 10
    for *where, to in (
        ("--to", "earliest", 0), ("--to", "latest", 10), ("--to", "4", 4), ("--to", "99", 10),
        ("--to", "-3", 7), ("--by", "-2", 5), ("--by", "-99", 0), ("--by", "8", 8),
        ("--by", "8", 10), ("--to", f"@{START_MS + 4_001}", 5), ("--to", "@-1h", 10),
        ("--to", "@2023-11-14T22:13:22Z", 2),
    ):  # fmt: skip
        rows = lines(semel("groups", "reset", group, *where, "--json"))
        assert rows == [
            {"topic": topic, "partition": 0, "from": 0, "to": 0},
            {"topic": topic, "partition": 1, "from": before, "to": to},
        ]
        before = to
    assert offsets(semel, group) == [(0, 0), (1, 2)]
    read = semel("consume", topic, "-e", "-g", group)
    assert read.stdout.split() == ["2", "3", "4", "5", "6", "7", "8", "9"]


def test_a_dry_run_shows_what_would_change_and_changes_nothing(
    semel: Run, topic: str, group: str
) -> None:
    shown = semel("groups", "reset", group, "--to", "earliest", "--dry-run")
    assert shown.stdout.startswith("nothing is changed: a dry run\n")
    assert [line.split() for line in shown.stdout.splitlines()[-1:]] == [[topic, "1", "10", "0"]]
    assert offsets(semel, group) == [(0, 0), (1, 10)]


def test_only_the_partitions_that_are_named_move(semel: Run, topic: str, group: str) -> None:
    rows = lines(semel("groups", "reset", group, "--to", "3", "--topic", f"{topic}:1", "--json"))
    assert [row["partition"] for row in rows] == [1]
    assert offsets(semel, group) == [(0, 0), (1, 3)]
    for other, says in ((f"{topic}:2", "has 2 partitions, no 2"), ("nowhere", "topic 'nowhere'")):
        refused = semel("groups", "reset", group, "--to", "0", "--topic", other)
        assert refused.returncode == Exit.FAILED
        assert says in refused.stderr


def test_a_new_group_gets_offsets_where_its_topic_is_named(semel: Run, topic: str) -> None:
    refused = semel("groups", "reset", "unheard-of", "--to", "latest")
    assert refused.returncode == Exit.FAILED
    assert "has committed no offsets: say with --topic for which topic" in refused.stderr
    refused = semel("groups", "reset", "unheard-of", "--by", "1", "--topic", topic)
    assert "has no committed offset of" in refused.stderr
    rows = lines(semel("groups", "reset", "fresh", "--to", "latest", "--topic", topic, "--json"))
    assert [(row["from"], row["to"]) for row in rows] == [(None, 0), (None, 10)]
    assert semel("consume", topic, "-e", "-g", "fresh").stdout == ""


def test_a_group_with_members_is_left_alone(
    semel: Run, topic: str, group: str, broker: SemelProcess
) -> None:
    with blocking.Consumer(broker.bootstrap, group_id=group, client_id="busy") as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        refused = semel("groups", "reset", group, "--to", "earliest")
        assert refused.returncode == Exit.FAILED
        assert "has a member (busy at /127.0.0.1)" in refused.stderr
        assert "stop them first, and wait until the group is empty" in refused.stderr
    assert offsets(semel, group) == [(0, 0), (1, 10)]


def test_a_place_is_given_in_one_way(semel: Run, group: str) -> None:
    refused = semel("groups", "reset", group, "--to", "0", "--by", "1")
    assert refused.returncode == Exit.USAGE
    assert "one of the two" in refused.stderr
