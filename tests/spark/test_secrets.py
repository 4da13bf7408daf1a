"""TLS and SASL reach every connection, of the driver and of the tasks; passwords reach no page."""

import json
import os
import pickle
import ssl
import subprocess
import sys
from collections import Counter

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.ports import free_port

from semel.errors import UsageError
from semel.spark import ExactlyOnceSink
from semel.spark.kafka.settings import SparkSettings
from semel.spark.kafka.transactions import Lent
from semel.spark.sink.writer import TaskWriter
from semel.wire.compression import Compression

PASSWORD = "open-sesame-8271"
PLAIN, SCRAM = (
    f"org.apache.kafka.common.security.{name}LoginModule required"
    for name in ("plain.Plain", "scram.Scram")
)
SETTINGS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "alice",
    "sasl.password": PASSWORD,
    "ssl.certificate.location": "/where/the/certificate/is",
    "ssl.key.location": "/where/the/key/is",
}


def test_nothing_that_is_printed_shows_a_secret():
    sink = ExactlyOnceSink("localhost:9092", "t", application="app", settings=SETTINGS)
    lent = Lent("semel-app", 7, 0, 2, token="the-token")
    settings = SparkSettings.of("localhost:9092", SETTINGS)
    task = TaskWriter(lent, settings, "h", 1, "t", Compression.NONE)
    printed = f"{sink!r} {sink.committer!r} {vars(sink)!r} {task!r} {settings} {lent}"
    for secret in (PASSWORD, "the-token", "/where/the/key/is"):
        assert secret not in printed
    assert "alice" in printed
    assert pickle.loads(pickle.dumps(task)).settings.sasl_password == PASSWORD


def test_a_mechanism_that_is_not_there_is_refused_at_once_and_the_others_are_named():
    with pytest.raises(UsageError, match="use one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        SparkSettings.of({**SETTINGS, "sasl.mechanism": "GSSAPI"})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"security.protocol": "SASL-SSL"},
            "security_protocol 'SASL-SSL': use one of PLAINTEXT, SSL",
        ),
        ({"ssl.truststore.type": "JKS"}, "certificates and keys are PEM files"),
        ({"ssl.truststore.location": "a.jks"}, "ssl_cafile: not used while security_protocol is"),
        (
            {"security.protocol": "SSL", "ssl_context": ssl.create_default_context()},
            "cannot travel to Spark's tasks",
        ),
    ],
)
def test_a_setting_that_would_be_left_out_is_refused(settings, sentence):
    with pytest.raises(UsageError, match=sentence):
        SparkSettings.of(settings)


def test_java_s_way_to_name_a_user_is_understood():
    jaas = f'{PLAIN} username="alice" password="{PASSWORD}";'
    settings = SparkSettings.of({"security.protocol": "SASL_SSL", "sasl.jaas.config": jaas})
    assert (settings.sasl_username, settings.sasl_password) == ("alice", PASSWORD)


@pytest.fixture
def guarded(tmp_path):
    """Apache Kafka with a listener for TLS, and one that wants a password too."""
    keys, certificate = tmp_path / "keys.p12", tmp_path / "certificate.pem"
    secret = ("-storepass", PASSWORD, "-storetype", "PKCS12", "-keystore", str(keys))
    run = {"check": True, "capture_output": True}
    subprocess.run(
        ["keytool", "-genkeypair", "-alias", "broker", "-keyalg", "RSA", "-dname", "CN=localhost",
         "-ext", "SAN=dns:localhost,ip:127.0.0.1", *secret], **run,
    )  # fmt: skip
    subprocess.run(
        ["keytool", "-exportcert", "-rfc", "-alias", "broker", "-file", str(certificate), *secret],
        **run,
    )
    plain, safe, tls, controller = (free_port() for _ in range(4))
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{safe},SSL://127.0.0.1:{tls}"
    kafka = ApacheKafka(
        {
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_SSL:SASL_SSL,SSL:SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} user_alice="{PASSWORD}";',
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
            "ssl.keystore.location": str(keys),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": PASSWORD,
        }
    )
    kafka.port = plain
    with kafka:
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion("alice", scram, PASSWORD.encode())
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result()
        addresses = {"SASL_SSL": f"127.0.0.1:{safe}", "SSL": f"127.0.0.1:{tls}"}
        yield kafka, addresses, str(certificate)


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(1200)
def test_a_query_over_tls_and_sasl_tells_nobody_its_password(
    guarded, world, lines, new_plan, run_driver, tmp_path
):
    broker, addresses, certificate = guarded
    kafka = world(broker.bootstrap)
    events = tmp_path / "events"
    events.mkdir()
    plan = {**new_plan(kafka), "bootstrap": addresses["SASL_SSL"], "events": str(events)}
    plan["log_level"] = "INFO"

    def run(mechanism, password):
        lines.add(100)
        given = {"sasl.mechanism": mechanism, "sasl.password": password}
        settings = {**SETTINGS, **given, "ssl.ca.location": certificate}
        del settings["ssl.key.location"], settings["ssl.certificate.location"]
        done = run_driver(**{**plan, "sink": {"settings": settings}})
        assert password not in done.stdout
        return done

    for mechanism in ("SCRAM-SHA-512", "PLAIN"):
        done = run(mechanism, PASSWORD)
        assert done.returncode == 0, done.stdout
        assert kafka.values(plan["topic"]) == Counter(lines.rows)
    refused = run("PLAIN", "not-the-password")
    assert refused.returncode == 1
    assert "SASL_AUTHENTICATION_FAILED" in refused.stdout
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".p12"]
    assert any(events in path.parents for path in kept)
    assert [path for path in kept if PASSWORD.encode() in path.read_bytes()] == []


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(600)
def test_a_pipeline_s_file_says_how_both_its_sides_reach_the_broker(guarded, world, tmp_path):
    broker, addresses, certificate = guarded
    kafka = world(broker.bootstrap)
    source, sink = kafka.topic(2), kafka.topic(2)
    words = []

    def run(protocol, **settings):
        words.append(f"over {protocol}")
        producer = kafka.producer()
        producer.produce(source, words[-1])
        producer.flush()
        settings = {"security.protocol": protocol, "ssl.ca.location": certificate, **settings}
        given = {
            "application": sink, "bootstrap_servers": addresses[protocol],
            "source": source, "sink": sink,
            "transform": "SELECT upper(value) AS value FROM source",
            "checkpoint": str(tmp_path / "checkpoint"),
        }  # fmt: skip
        path = tmp_path / "pipeline.toml"
        lines = [*_toml(given), "[settings]", *_toml(settings)]
        path.write_text("\n".join(lines))
        command = [sys.executable, "-m", "semel.cli", "pipeline", "run", str(path), "--once"]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
        path.unlink()
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        assert kafka.values(sink) == Counter(word.upper() for word in words)

    run("SSL")
    user = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "alice", "sasl.password": PASSWORD}
    run("SASL_SSL", **user)
    kept = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert kept
    assert [path for path in kept if PASSWORD.encode() in path.read_bytes()] == []


def _toml(table):
    return [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in table.items()]
