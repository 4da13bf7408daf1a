"""Settings as people bring them: keywords, Java's names, words for numbers, and mistyped ones."""

from pathlib import Path

import pytest

from semel.client import Admin, Consumer, Producer, UsageError, transact
from semel.client.settings.clients import ProducerSettings
from semel.client.settings.values import made_of


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


def test_librdkafka_s_names_and_words_make_a_client() -> None:
    producer = Producer(
        {
            "metadata.broker.list": "a:1",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": "me",
            "sasl.password": "secret",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "me.pem",
            "ssl.key.location": "me.key",
            "ssl.key.password": "hush",
            "ssl.endpoint.identification.algorithm": "none",
            "queue.buffering.max.ms": 7,
            "queue.buffering.max.kbytes": 64,
            "compression.codec": "zstd",
            "request.required.acks": -1,
            "message.timeout.ms": 9_000,
        }
    )
    found = producer.settings
    assert found.bootstrap_servers == "a:1"
    assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert (found.ssl_cafile, found.ssl_certfile, found.ssl_keyfile) == (
        "ca.pem", "me.pem", "me.key",
    )  # fmt: skip
    assert (found.ssl_password, found.ssl_check_hostname) == ("hush", False)
    assert (found.linger_ms, found.buffer_memory) == (7, 65_536)
    assert (found.compression_type, found.required_acks) == ("zstd", -1)
    assert found.delivery_timeout_ms == 9_000
    consumer = Consumer({"auto.offset.reset": "largest", "fetch.wait.max.ms": "50"})
    assert consumer.settings.auto_offset_reset == "latest"
    assert consumer.settings.fetch_max_wait_ms == 50


def test_java_s_names_for_tls_and_users_make_a_client() -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    found = Consumer(
        {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": "ca.pem",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": "me.pem",
            "ssl.keystore.type": "PEM",
            "ssl.endpoint.identification.algorithm": "https",
            "sasl.jaas.config": f'{module} required username="me" password="secret";',
        }
    ).settings
    assert (found.ssl_cafile, found.ssl_certfile) == ("ca.pem", "me.pem")
    assert (found.sasl_username, found.sasl_password) == ("me", "secret")
    assert found.ssl_check_hostname is True


def test_kafka_python_s_keywords_make_a_client() -> None:
    words = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret",
    }
    found = Admin("a:1", settings=words).settings
    assert (found.sasl_username, found.sasl_password) == ("me", "secret")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"ssl.truststore.type": "JKS"},
            "ssl.truststore.type 'JKS': certificates and keys are PEM",
        ),
        (
            {"ssl.keystore.password": "x"},
            "not a setting here: .*the key's password is ssl_password",
        ),
        ({"enable.ssl.certificate.verification": False}, "give an ssl_context"),
        ({"value.deserializer": "StringDeserializer"}, "a function by the keyword value_deseriali"),
        ({"retries": 3}, "delivery_timeout_ms"),
        ({"api_version": (2, 0)}, "versions are agreed with each broker"),
        (
            {"ssl.ca.location": "a", "ssl_cafile": "b"},
            "ssl.ca.location and ssl_cafile are the same",
        ),
        ({"ssl_cafile": "ca.pem"}, "ssl_cafile: not used while security_protocol is PLAINTEXT"),
        ({"sasl.password": "p", "security.protocol": "ssl"}, "sasl_password: not used while"),
        ({"sasl.jaas.config": "nobody", "security.protocol": "SASL_SSL"}, 'no username="…"'),
        ({"ssl.endpoint.identification.algorithm": "ldap"}, "should be https, or none"),
        ({"security.protocol": "SASL_SSL"}, "sasl_mechanism PLAIN needs a sasl_username"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "a sasl_oauth_token"),
        ({"security.protocol": "SSL", "ssl_keyfile": "k"}, "need an ssl_certfile"),
        ({"bootstrap.servers": "nowhere"}, "'nowhere' should be host:port"),
        ({"bootstrap.servers": "h:70000"}, "should be host:port"),
        ({"bootstrap.servers": ""}, "bootstrap_servers is empty"),
        ({"bootstrap.servers": 9092}, "'9092' should be host:port"),
        ({"fetch.min.bytes": "-1"}, "fetch_min_bytes '-1': should not be negative"),
        ({"fetch.min.bytes": 1.5}, "fetch_min_bytes should be a whole number, not 1.5"),
        ({"fetch.min.bytes": True}, "fetch_min_bytes should be a number, not True"),
        ({"fetch.min.bytes": [1]}, r"fetch_min_bytes should be a number, not \[1\]"),
        ({"client.id": ["a"]}, r"client_id should be a text, not \['a'\]"),
        ({"ssl_context": "tls"}, "ssl_context should be an SSLContext, not 'tls'"),
        ({"sasl.password": ["secret"]}, "sasl_password should be a text, not list"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_in_a_sentence(
    given: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        Consumer(given)


def test_a_producer_has_no_group_and_says_so() -> None:
    with pytest.raises(UsageError, match=r"unknown setting 'group\.id'"):
        Producer({"group.id": "g"})


def test_secrets_are_not_printed() -> None:
    given = {"sasl_password": "hunter2", "sasl_oauth_token": "tok", "ssl_password": "hush"}
    others = {"sasl_username": "me", "ssl_certfile": "me.pem", "security_protocol": "SASL_SSL"}
    found = Admin("a:1", **given, **others).settings
    assert not [secret for secret in given.values() if secret in repr(found)]


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile"])
def test_a_file_that_is_not_there_or_not_pem_is_named(name: str, tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    for path, why in ((tmp_path / "nowhere.pem", "No such file"), (store, "must be a PEM file")):
        settings = Admin("a:1", security_protocol="SSL", **{name: str(path)}).settings
        with pytest.raises(UsageError, match=rf"{name}.*{path.name} cannot be used: .*{why}"):
            settings.tls()


def test_transact_takes_the_same_names_and_keeps_what_makes_it_exactly_once() -> None:
    properties = {"bootstrap.servers": "a:1", "linger.ms": "3", "max.poll.records": "7"}
    loop = transact(properties, inputs="t", group_id="g", transactional_id="t")
    assert loop.producer.settings.linger_ms == 3
    assert loop.consumer.settings.max_poll_records == 7
    assert loop.consumer.settings.bootstrap_servers == "a:1"
    with pytest.raises(UsageError, match="isolation_level: transact decides this itself"):
        transact({"isolation.level": "read_uncommitted"}, inputs="t", group_id="g",
                 transactional_id="t")  # fmt: skip
    with pytest.raises(UsageError, match="did you mean linger_ms"):
        transact(inputs="t", group_id="g", transactional_id="t", settings={"linger.m": 1})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lingerms", "unknown option 'lingerms'; did you mean linger_ms?"),
        ("entirely", "unknown option 'entirely'"),
    ],
)
def test_an_option_that_is_not_there_is_refused_also_if_none_is_like_it(
    name: str, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        made_of(ProducerSettings, {name: 1})
    assert str(refused.value) == said
