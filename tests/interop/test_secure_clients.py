"""Clients nobody here wrote, over SASL_SSL by each mechanism they know, and by certificates."""

import asyncio
import ssl
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider
from tests.support.brokers.apache_kafka import kafka_tool
from tests.support.brokers.secure import MECHANISMS, PASSWORD, USER, SecureProcess

pytestmark = pytest.mark.interop
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureProcess]:
    with SecureProcess(tmp_path_factory.mktemp("secure")) as broker:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            kafka_tool(
                "kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap, "--alter",
                "--entity-type", "users", "--entity-name", USER, "--add-config",
                f"{mechanism}=[iterations=4096,password={PASSWORD}]",
            )  # fmt: skip
        yield broker


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fresh() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def test_kafka_configs_describes_users_without_their_secrets(secure: SecureProcess) -> None:
    told = kafka_tool(
        "kafka.admin.ConfigCommand", "--bootstrap-server", secure.bootstrap, "--describe",
        "--entity-type", "users", "--entity-name", USER,
    ).stdout  # fmt: skip
    assert "SCRAM-SHA-256=iterations=4096, SCRAM-SHA-512=iterations=4096" in told


def test_librdkafka(secure: SecureProcess, mechanism: str) -> None:
    topic = fresh()
    settings: dict[str, Any] = {
        "bootstrap.servers": secure.bootstrap_of("SASL_SSL"), "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(secure.authority.file), "sasl.mechanism": mechanism,
    }  # fmt: skip
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (secure.token(), 2_000_000_000.0)
    else:
        settings |= {"sasl.username": USER, "sasl.password": PASSWORD}
    producer = confluent_kafka.Producer(settings)
    for number in range(100):
        producer.produce(topic, str(number).encode())
    assert producer.flush(30) == 0
    reading = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings | reading)
    consumer.subscribe([topic])
    found = set()
    while len(found) < 100:
        message = consumer.poll(30)
        assert message is not None
        assert not message.error(), message.error()
        found.add(message.value())
    consumer.close()


def test_aiokafka(secure: SecureProcess, mechanism: str) -> None:
    class Tokens(AioTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return secure.token()

    async def roundtrip() -> None:
        topic = fresh()
        settings: dict[str, Any] = {
            "bootstrap_servers": secure.bootstrap_of("SASL_SSL"), "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=secure.authority.file),
            "sasl_mechanism": mechanism, "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD, "sasl_oauth_token_provider": Tokens(),
        }  # fmt: skip
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            for number in range(20):
                await producer.send_and_wait(topic, str(number).encode())
        consumer = aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings)
        async with consumer:
            found = [(await consumer.getone()).value for _ in range(20)]
        assert found == [str(number).encode() for number in range(20)]

    asyncio.run(asyncio.wait_for(roundtrip(), 60))


def test_kafka_python(secure: SecureProcess, mechanism: str) -> None:
    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return secure.token()

    topic = fresh()
    settings: dict[str, Any] = {
        "bootstrap_servers": secure.bootstrap_of("SASL_SSL"), "security_protocol": "SASL_SSL",
        "ssl_cafile": str(secure.authority.file), "sasl_mechanism": mechanism,
    }  # fmt: skip
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = Tokens()
    else:
        settings |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    producer = kafka.KafkaProducer(**settings)
    for number in range(20):
        producer.send(topic, str(number).encode()).get(30)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **settings
    )
    found = [next(consumer).value for _ in range(20)]
    consumer.close()
    assert found == [str(number).encode() for number in range(20)]


def test_franz_go(secure: SecureProcess, mechanism: str, franz: Callable[..., None]) -> None:
    secret = secure.token() if mechanism == "OAUTHBEARER" else PASSWORD
    at, ca = secure.bootstrap_of("SASL_SSL"), str(secure.authority.file)
    franz("secure", at, fresh(), ca, mechanism, USER, secret)


def java_settings(secure: SecureProcess, mechanism: str, directory: Path) -> dict[str, str]:
    settings = {
        "security.protocol": "SASL_SSL", "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secure.authority.file), "sasl.mechanism": mechanism,
    }  # fmt: skip
    login = f'required username="{USER}" password="{PASSWORD}";'
    if mechanism == "OAUTHBEARER":
        token = directory / "token.jwt"
        token.write_text(secure.token())
        return settings | {
            "sasl.jaas.config": f"{BEARER}.OAuthBearerLoginModule required;",
            "sasl.oauthbearer.jwt.retriever.class": f"{BEARER}.FileJwtRetriever",
            "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
            "sasl.login.callback.handler.class": f"{BEARER}.OAuthBearerLoginCallbackHandler",
        }
    return settings | {"sasl.jaas.config": f"{PLAIN if mechanism == 'PLAIN' else SCRAM} {login}"}


def java_roundtrip(at: str, settings: dict[str, str], directory: Path) -> list[str]:
    """Kafka's console producer and consumer: what the second printed of the first's lines."""
    file = directory / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    topic = fresh()
    kafka_tool(
        "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", at, "--topic", topic,
        "--command-config", str(file), stdin="one\ntwo\nthree\n",
    )  # fmt: skip
    return kafka_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", at, "--topic",
        topic, "--from-beginning", "--max-messages", "3", "--timeout-ms", "30000",
        "--command-config", str(file),
    ).stdout.split()  # fmt: skip


def test_java(
    secure: SecureProcess, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
    token = tmp_path / "token.jwt"
    monkeypatch.setenv(
        "JAVA_TOOL_OPTIONS", f"{allowed}.urls={token.as_uri()} {allowed}.files={token}"
    )
    settings = java_settings(secure, mechanism, tmp_path)
    lines = java_roundtrip(secure.bootstrap_of("SASL_SSL"), settings, tmp_path)
    assert lines == ["one", "two", "three"]


def test_java_by_a_certificate(secure: SecureProcess, tmp_path: Path) -> None:
    settings = {
        "security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(secure.authority.file),
        "ssl.keystore.location": str(secure.authority.issue("CN=alice,OU=people")),
    }  # fmt: skip
    lines = java_roundtrip(secure.bootstrap_of("SSL"), settings, tmp_path)
    assert lines == ["one", "two", "three"]


def test_java_with_a_wrong_password_is_told(secure: SecureProcess, tmp_path: Path) -> None:
    settings = java_settings(secure, "SCRAM-SHA-512", tmp_path)
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace(PASSWORD, "wrong")
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    done: subprocess.CompletedProcess[str] = kafka_tool(
        "org.apache.kafka.tools.TopicCommand", "--bootstrap-server",
        secure.bootstrap_of("SASL_SSL"), "--command-config", str(file), "--list", check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in done.stdout + done.stderr
