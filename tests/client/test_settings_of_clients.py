"""Settings as people bring them: keywords, Java's names, words for numbers, and mistyped ones."""

import pytest

from semel.client import Admin, Consumer, Producer, UsageError


def test_a_dict_of_java_style_names_makes_a_client() -> None:
    properties = {
        "bootstrap.servers": "a:1,b:2",
        "group.id": "g",
        "enable.auto.commit": "true",
        "session.timeout.ms": "6000",
        "isolation.level": "read_committed",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor,range",
    }
    for consumer in (Consumer(properties), Consumer(settings=properties)):
        settings = consumer.settings
        assert [str(endpoint) for endpoint in settings.endpoints()] == ["a:1", "b:2"]
        assert settings.enable_auto_commit is True
        assert settings.session_timeout_ms == 6_000
        assert settings.strategies == ["sticky", "range"]
    assert Producer({"bootstrap.servers": "a:1", "linger.ms": "2.5"}).settings.linger_ms == 2.5
    assert Admin({"bootstrap.servers": "a:1"}).settings.bootstrap_servers == "a:1"


def test_keywords_win_over_the_dict() -> None:
    assert Consumer({"group.id": "a"}, group_id="b").settings.group_id == "b"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"group.idd": "g"}, "unknown setting 'group.idd'; did you mean group_id?"),
        ({"enable.auto.commit": "perhaps"}, "should be true or false"),
        ({"session.timeout.ms": "soon"}, "soon"),
        ({"isolation.level": "none"}, "use one of read_committed, read_uncommitted"),
        ({"group.protocol": "consumer", "heartbeat.interval.ms": 1}, "the broker's to say"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        Consumer(given)


async def test_an_unknown_strategy_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match="unknown partition_assignment_strategy fair"):
        await Consumer("h:1", group_id="g", partition_assignment_strategy="fair").start()
