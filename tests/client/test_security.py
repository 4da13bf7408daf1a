"""TLS and SASL against Apache Kafka, and the exchanges themselves against their RFCs."""

import base64
import hashlib
import hmac
import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka, kafka_tool
from tests.support.brokers.ports import free_port

from semel.client import Admin, FatalError, Producer, UsageError
from semel.net.client_sasl import Bearer, Plain, Scram

PASSWORD = "secret-for-tests"


def test_plain_is_two_nulls_and_two_words() -> None:
    exchange = Plain("me", "pass")
    assert exchange.first() == b"\0me\0pass"
    assert exchange.next(b"") is None


def test_scram_follows_the_example_of_rfc_7677() -> None:
    exchange = Scram("sha256", "user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    assert exchange.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    proof = exchange.next(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert proof == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert exchange.next(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_scram_does_not_believe_a_broker_that_does_not_know_the_password() -> None:
    exchange = Scram("sha256", "user", "pencil", nonce="abc")
    with pytest.raises(ValueError, match="another exchange"):
        exchange.next(b"r=xyz,s=c2FsdA==,i=4096")
    with pytest.raises(ValueError, match="10 iterations"):
        exchange.next(b"r=abcd,s=c2FsdA==,i=10")
    exchange.next(b"r=abcd,s=c2FsdA==,i=4096")
    forged = base64.b64encode(hmac.digest(b"k", b"m", hashlib.sha256))
    with pytest.raises(ValueError, match="does not know the password"):
        exchange.next(b"v=" + forged)


def test_names_with_commas_and_equals_signs_are_escaped() -> None:
    assert Scram("sha512", "a=b,c", "p", nonce="n").first() == b"n,,n=a=3Db=2Cc,r=n"


def test_a_refused_token_is_reported_with_the_brokers_words() -> None:
    exchange = Bearer("token")
    assert exchange.first() == b"n,,\x01auth=Bearer token\x01\x01"
    with pytest.raises(ValueError, match="invalid_token"):
        exchange.next(b'{"status":"invalid_token"}')


async def test_unknown_mechanisms_and_protocols_are_named() -> None:
    with pytest.raises(UsageError, match="PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        Producer("h:1", security_protocol="TLS")
    with pytest.raises(UsageError, match="SCRAM-SHA-512"):
        await Producer("h:1", security_protocol="SASL_SSL", sasl_mechanism="NTLM").start()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for localhost, as Java and as Python read it."""
    directory = tmp_path_factory.mktemp("certificates")
    keytool = shutil.which("keytool")
    assert keytool, "interop tests need a JDK"
    store = directory / "broker.p12"
    subprocess.run(
        [keytool, "-genkeypair", "-keystore", store, "-storetype", "PKCS12", "-storepass", PASSWORD,
         "-alias", "broker", "-keyalg", "RSA", "-dname", "CN=localhost", "-validity", "3650",
         "-ext", "SAN=dns:localhost,ip:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    exported = subprocess.run(
        [keytool, "-exportcert", "-rfc", "-keystore", store, "-storepass", PASSWORD,
         "-alias", "broker"],
        check=True, capture_output=True,
    )  # fmt: skip
    (directory / "ca.pem").write_bytes(exported.stdout)
    return directory


@pytest.fixture(scope="module")
def secure_kafka(certificates: Path) -> Iterator[dict[str, str]]:
    """Apache Kafka with four doors: TLS, and SASL in the clear by three kinds of mechanism."""
    tls, sasl = free_port(), free_port()
    login = "org.apache.kafka.common.security"
    kafka = ApacheKafka()
    kafka.settings |= {
        "listeners": f"PLAINTEXT://127.0.0.1:{kafka.port},SSL://127.0.0.1:{tls},"
        f"SASL_SSL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{(controller := free_port())}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{kafka.port},SSL://127.0.0.1:{tls},"
        f"SASL_SSL://127.0.0.1:{sasl}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_SSL:SASL_SSL",
        "ssl.keystore.location": str(certificates / "broker.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{login}.plain.PlainLoginModule required "
        f'username="b" password="b" user_me="{PASSWORD}";',
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule "
        "required;",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{login}.scram.ScramLoginModule "
        "required;",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{login}.oauthbearer."
        'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";',
    }  # fmt: skip
    with kafka:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            kafka_tool(
                "kafka.admin.ConfigCommand", "--bootstrap-server", kafka.bootstrap, "--alter",
                "--entity-type", "users", "--entity-name", "me", "--add-config",
                f"{mechanism}=[password={PASSWORD}]",
            )  # fmt: skip
        yield {"SSL": f"127.0.0.1:{tls}", "SASL_SSL": f"127.0.0.1:{sasl}"}


def unsecured_token(lifetime_s: float = 3600) -> str:
    """What Kafka's built-in validator for tests takes: a JSON web token without a signature."""

    def part(facts: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(facts).encode()).decode().rstrip("=")

    now = time.time()
    return f"{part({'alg': 'none'})}.{part({'sub': 'me', 'iat': now, 'exp': now + lifetime_s})}."


@pytest.mark.interop
async def test_tls_checks_the_brokers_certificate(
    secure_kafka: dict[str, str], certificates: Path
) -> None:
    given = {"security_protocol": "SSL", "default_api_timeout_ms": 5_000}
    trusting = {"ssl_cafile": str(certificates / "ca.pem")}
    async with Admin(secure_kafka["SSL"], **given, **trusting) as admin:
        await admin.create_topics(["over-tls"])
    async with Producer(secure_kafka["SSL"], security_protocol="SSL", **trusting) as producer:
        assert (await producer.send_and_wait("over-tls", b"x" * 100_000)).offset == 0
    with pytest.raises(Exception, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
        await Admin(secure_kafka["SSL"], **given).start()


@pytest.mark.interop
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
async def test_every_mechanism_lets_the_right_one_in(
    secure_kafka: dict[str, str], certificates: Path, mechanism: str
) -> None:
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    given = {
        "security_protocol": "SASL_SSL", "ssl_context": context, "sasl_mechanism": mechanism,
        "sasl_username": "me", "default_api_timeout_ms": 10_000,
    }  # fmt: skip
    right = {"sasl_password": PASSWORD, "sasl_oauth_token": unsecured_token}
    async with Admin(secure_kafka["SASL_SSL"], **given, **right) as admin:
        assert (await admin.describe_cluster()).brokers
    wrong = {"sasl_password": "wrong", "sasl_oauth_token": unsecured_token(-10)}
    with pytest.raises(FatalError):
        await Admin(secure_kafka["SASL_SSL"], **given, **wrong).start()
