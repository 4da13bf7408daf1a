"""Kafka's own tools read our __consumer_offsets: groups of both kinds, offsets, transactions."""

from collections.abc import Iterator

import pytest
from tests.support.brokers.apache_kafka import kafka_tool
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.group_conversation import GroupConversation

from semel.core.placing import partition_of

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def semel() -> Iterator[SemelProcess]:
    with SemelProcess() as broker:
        yield broker


@pytest.fixture
def talk(semel: SemelProcess) -> Iterator[GroupConversation]:
    conversation = GroupConversation(semel.bootstrap)
    yield conversation
    conversation.close()


def dump(semel: SemelProcess, group: str) -> str:
    """What Kafka's offsets decoder prints of the group's partition."""
    directory = semel.data / f"__consumer_offsets-{partition_of(group, 50)}"
    files = ",".join(str(path) for path in sorted(directory.glob("*.log")))
    done = kafka_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--files", files, "--offsets-decoder"
    )
    return done.stdout


def test_dump_log_segments_decodes_a_classic_group_and_its_offsets(semel, talk):
    member = talk.member("a")
    member.join()
    member.sync()
    member.commit(7)
    member.leave()
    talk.delete_offsets(0)
    talk.delete_group()
    printed = dump(semel, talk.group)
    assert '"type":"2"' in printed
    assert '"protocol":"range"' in printed
    assert '"offset":7' in printed
    assert '"clientId":"a"' in printed
    assert "payload: <DELETE>" in printed
    assert "unknown" not in printed.lower()


def test_dump_log_segments_decodes_a_consumer_group(semel, talk):
    member = talk.member("b")
    member.heartbeat(0, subscribed_topic_regex="x.*")
    member.heartbeat(-1)
    talk.delete_group()
    printed = dump(semel, talk.group)
    for kind in (3, 5, 6, 7, 8, 16):
        assert f'"type":"{kind}"' in printed, kind
    assert '"subscribedTopicRegex":"x.*"' in printed
    assert '"assignmentEpochs":[2,2,2,2]' in printed


def test_the_offsets_formatter_reads_what_groups_committed(semel, talk):
    talk.admin_commit(42, 1)
    done = kafka_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server", semel.bootstrap, "--topic", "__consumer_offsets",
        "--from-beginning", "--timeout-ms", "8000",
        "--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
        check=False,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if talk.group in line]
    assert any('"offset":42' in line and '"partition":1' in line for line in lines), done.stderr
