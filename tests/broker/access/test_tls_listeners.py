"""TLS on the broker: certificates of both sides, bad handshakes, new files, large answers."""

import asyncio
import os
import ssl
import time

import pytest
from tests.support.certificates import Authority

from semel.broker.settings.definitions import BadSetting
from semel.client import Consumer, Producer, TopicPartition
from semel.net.connection import Connection
from semel.net.tls import ReadingOutbox, TlsConnection
from semel.wire.messages.api_versions import ApiVersionsRequest
from semel.wire.messages.describe_configs import DescribeConfigsRequest
from semel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from semel.wire.messages.metadata import MetadataRequest

METADATA = MetadataRequest(topics=[])
AUTH = "listener.name.ssl.ssl.client.auth"


def context(authority, certificate=None, version=None):
    made = ssl.create_default_context(cafile=authority.file)
    if certificate is not None:
        made.load_cert_chain(certificate)
    if version is not None:
        made.minimum_version = made.maximum_version = version
    return made


async def refused(connect_to, broker, with_context) -> bool:
    """Whether the broker does not let this one in, at the handshake or right after it."""
    try:
        ask = await connect_to(broker, "SSL", with_context)
        await ask(METADATA, 4)
    except (OSError, asyncio.IncompleteReadError):
        return True
    return False


@pytest.fixture
def principals(until):
    async def of(broker, listener="SSL", count=1):
        connections = broker.listeners.all[listener].net.connections
        await until(lambda: len(connections) == count)
        return {str(one.principal) for one in connections}

    return of


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_both_versions_are_spoken(secure, connect_to, authority, version, principals):
    ask = await connect_to(secure, "SSL", context(authority, version=version))
    assert (await ask(METADATA, 4)).brokers[0].port == secure.listeners.all["SSL"].net.port
    assert await principals(secure) == {"User:ANONYMOUS"}


async def test_a_version_that_is_not_enabled_is_refused(start_secure, connect_to, authority):
    broker = await start_secure(ssl_enabled_protocols="TLSv1.3")
    assert await refused(connect_to, broker, context(authority, version=ssl.TLSVersion.TLSv1_2))
    assert not await refused(connect_to, broker, context(authority))


async def test_ciphers_have_javas_names(start_secure, connect_to, authority):
    only = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    broker = await start_secure(ssl_cipher_suites=only, ssl_enabled_protocols="TLSv1.2")
    ask = await connect_to(broker, "SSL", context(authority))
    assert ask.writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"
    other = context(authority)
    other.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    assert await refused(connect_to, broker, other)


async def test_a_certificate_names_its_client(start_secure, connect_to, authority, principals):
    broker = await start_secure({AUTH: "required"})
    alice = authority.issue("CN=alice,OU=people,O=us")
    ask = await connect_to(broker, "SSL", context(authority, alice))
    assert (await ask(METADATA, 4)).brokers
    assert await principals(broker) == {"User:CN=alice,OU=people,O=us"}


async def test_rules_make_names_of_subjects(start_secure, connect_to, authority, principals):
    rules = "RULE:^CN=([a-zA-Z0-9.]*).*OU=people.*$/$1/L,RULE:^CN=(.*?)$/svc-$1/"
    broker = await start_secure({AUTH: "required"}, ssl_principal_mapping_rules=rules)
    alice = authority.issue("CN=Alice,OU=people,O=us")
    ask = await connect_to(broker, "SSL", context(authority, alice))
    assert (await ask(METADATA, 4)).brokers
    assert await principals(broker) == {"User:alice"}
    nobody = authority.issue("OU=others,O=us")
    assert await refused(connect_to, broker, context(authority, nobody))


async def test_who_must_show_a_certificate_and_has_none_is_refused(
    start_secure, connect_to, authority
):
    broker = await start_secure({AUTH: "required"})
    assert await refused(connect_to, broker, context(authority))


async def test_who_may_show_a_certificate_is_anonymous_without(
    start_secure, connect_to, authority, principals
):
    broker = await start_secure({AUTH: "requested"})
    assert not await refused(connect_to, broker, context(authority))
    assert await principals(broker) == {"User:ANONYMOUS"}


async def test_expired_foreign_and_revoked_certificates_are_refused(
    start_secure, connect_to, authority, tmp_path
):
    revoked, good = authority.issue("CN=revoked"), authority.issue("CN=good")
    expired = authority.issue("CN=expired", days=-1)
    foreign = Authority(tmp_path, "another").issue("CN=foreign")
    crl = str(authority.revoke(revoked))
    broker = await start_secure({AUTH: "required"}, ssl_crl_location=crl)
    for bad in (revoked, expired, foreign):
        assert await refused(connect_to, broker, context(authority, bad)), bad
    assert not await refused(connect_to, broker, context(authority, good))


async def test_sasl_over_tls_asks_for_certificates_only_where_that_listener_says_so(
    start_secure, connect_to, authority
):
    broker = await start_secure(ssl_client_auth="required")
    ask = await connect_to(broker, "SASL_SSL", context(authority))
    assert (await ask.log_in()).error_code == 0
    assert await refused(connect_to, broker, context(authority))


# Bad input


async def test_plaintext_on_a_tls_port_is_closed_and_nobody_else_disturbed(
    secure, connect_to, caplog
):
    good = await connect_to(secure, "SSL")
    plain = await connect_to(secure, "PLAINTEXT")
    port = secure.listeners.all["SSL"].net.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    ask = type(plain)(reader, writer)
    ask.send(ApiVersionsRequest(), 0)
    alert = await reader.read()
    assert alert == b"" or alert.startswith(b"\x15\x03")  # an alert of TLS, or nothing
    assert any("TLS handshake failed" in str(vars(record)) for record in caplog.records)
    assert (await good(METADATA, 4)).brokers
    writer.close()


async def test_tls_on_a_plaintext_port_is_closed(secure, authority):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", secure.port, ssl=context(authority))


async def test_half_handshakes_hold_nobody_up_and_end(start_secure, connect_to, until):
    broker = await start_secure(connection_authentication_timeout_ms=200)
    good = await connect_to(broker, "SSL")
    net = broker.listeners.all["SSL"].net
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    hello = lax.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    first = outgoing.read()
    flood = []
    for said in (first, first[:20], b"", b"\x16\x03\x01", os.urandom(200)) * 20:
        reader, writer = await asyncio.open_connection("127.0.0.1", net.port)
        writer.write(said)
        flood.append((reader, writer))
    assert (await good(METADATA, 4)).brokers
    await until(lambda: len(net.connections) == 1)
    assert (await good(METADATA, 4)).brokers
    for _, writer in flood:
        writer.transport.abort()


async def test_a_client_that_hangs_up_in_the_middle_is_forgotten(secure, authority, until):
    net = secure.listeners.all["SSL"].net
    _, writer = await asyncio.open_connection("127.0.0.1", net.port, ssl=context(authority))
    await until(lambda: net.connections)
    writer.transport.abort()
    await until(lambda: not net.connections)
    assert not net._newcomers


# What leaves is encrypted, whatever it is


async def test_large_answers_leave_encrypted_and_whole(secure, authority, monkeypatch):
    """Files too: `sendfile` would send them as they are."""

    def never(*_):
        raise AssertionError("sendfile on a TLS connection")

    monkeypatch.setattr(os, "sendfile", never)
    values = [os.urandom(700_000) for _ in range(8)]
    settings = {"security_protocol": "SSL", "ssl_cafile": str(authority.file)}
    at = secure.bootstrap_servers_of("SSL")
    async with Producer(at, **settings) as producer:
        for value in values:
            await producer.send_and_wait("large", value)
    async with Consumer(at, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([TopicPartition("large", 0)])
        found = []
        while len(found) < len(values):
            found += [record.value for record in await consumer.poll(5_000)]
    assert found == values


async def test_a_client_that_reads_slowly_gets_all_of_it(secure, connect_to, authority, until):
    """Ciphertext that the socket does not take waits, also when nothing else is to be sent."""
    ask = await connect_to(secure, "SSL")
    many = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="x" * 200)] * 1000)
    many.allow_auto_topic_creation = False
    ask.writer.transport.pause_reading()
    for _ in range(50):
        ask.send(many, 4)
    (connection,) = secure.listeners.all["SSL"].net.connections
    await until(lambda: connection._unsent is not None)
    ask.writer.transport.resume_reading()
    for _ in range(50):
        assert len((await ask.receive(3, 4)).topics) == 1000
    assert connection.is_settled


async def test_requests_in_one_go_are_all_answered(secure, connect_to):
    """Decrypted requests that wait are not announced by epoll."""
    ask = await connect_to(secure, "SSL")
    for _ in range(500):
        ask.send(METADATA, 4)
    for _ in range(500):
        assert (await ask.receive(3, 4)).brokers


async def test_connections_without_tls_are_what_they_were(secure, connect_to):
    await connect_to(secure, "PLAINTEXT")
    tls = await connect_to(secure, "SSL")
    await tls(METADATA, 4)
    (plain,) = secure.listeners.all["PLAINTEXT"].net.connections
    (secret,) = secure.listeners.all["SSL"].net.connections
    assert type(plain) is Connection
    assert type(secret) is TlsConnection
    assert type(secret._outbox) is ReadingOutbox


# Keys and certificates that change


def shown(ask):
    return ask.writer.get_extra_info("ssl_object").getpeercert()["subject"][0][0][1]


async def alter(ask, name, value, broker="1"):
    Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    change = IncrementalAlterConfigsRequest.AlterableConfig(name=name, value=value)
    resource = Resource(resource_type=4, resource_name=broker, configs=[change])
    return (await ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)).responses[0]


async def test_a_new_file_counts_from_the_next_connection(start_secure, connect_to, authority):
    file = authority.issue("CN=before", file="moving.pem")
    broker = await start_secure(ssl_keystore_location=str(file))
    old = await connect_to(broker, "SSL")
    assert shown(old) == "before"
    file.write_text("half a file")
    authority.issue("CN=after", file="new.pem").rename(file)
    new = await connect_to(broker, "SSL")
    while shown(new) != "after":  # files are looked at once a second
        new = await connect_to(broker, "SSL")
    assert (await old(METADATA, 4)).brokers


async def test_a_file_that_cannot_be_used_leaves_all_as_it_was(
    start_secure, connect_to, authority, caplog
):
    file = authority.issue("CN=before", file="breaking.pem")
    broker = await start_secure(ssl_keystore_location=str(file))
    file.write_text("not a key")
    tls = broker.listeners.all["SSL"].tls
    tls._look_at = 0.0
    assert shown(await connect_to(broker, "SSL")) == "before"
    assert any("kept the old certificate" in record.getMessage() for record in caplog.records)


async def test_certificates_are_changed_by_configs_and_bad_ones_refused(
    secure, connect_to, authority
):
    ask = await connect_to(secure, "PLAINTEXT")
    name = "listener.name.ssl.ssl.keystore.location"
    bad = await alter(ask, name, "/nowhere/at/all.pem")
    assert bad.error_code != 0
    assert "/nowhere/at/all.pem" in bad.error_message
    good = await alter(ask, name, str(authority.issue("CN=altered")))
    assert (good.error_code, good.error_message) == (0, None)
    assert shown(await connect_to(secure, "SSL")) == "altered"
    assert shown(await connect_to(secure, "SASL_SSL")) == "localhost"
    everywhere = await alter(ask, name, "x", broker="")
    assert everywhere.error_code != 0  # of one broker only, as in Kafka


async def test_secrets_of_settings_are_not_described(start_secure, connect_to, authority):
    text = authority.issue("CN=inline").read_text()
    key, _, chain = text.partition("-----BEGIN CERTIFICATE-----")
    one_line = " ".join(f"-----BEGIN CERTIFICATE-----{chain}".split("\n"))
    inline = {
        "listener.name.ssl.ssl.keystore.key": key,
        "listener.name.ssl.ssl.keystore.certificate.chain": one_line,
        "listener.name.sasl_ssl.ssl.keystore.location": str(authority.issue("CN=other")),
    }
    broker = await start_secure(inline, ssl_keystore_location=None)
    assert shown(await connect_to(broker, "SSL")) == "inline"
    ask = await connect_to(broker, "PLAINTEXT")
    wanted = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=None
    )
    [answer] = (await ask(DescribeConfigsRequest(resources=[wanted]), 4)).results
    told = {config.name: config for config in answer.configs}
    for name in ("listener.name.ssl.ssl.keystore.key",
                 "listener.name.sasl_ssl.plain.sasl.jaas.config"):  # fmt: skip
        assert told[name].value is None
        assert told[name].is_sensitive
    assert told["listener.name.sasl_ssl.ssl.keystore.location"].value is not None


async def test_a_key_with_a_password(start_secure, connect_to, authority):
    file = str(authority.issue("CN=locked", file="locked.pem", password="sesame"))
    broker = await start_secure(ssl_keystore_location=file, ssl_key_password="sesame")
    assert shown(await connect_to(broker, "SSL")) == "locked"
    await broker.stop()
    with pytest.raises(BadSetting, match=r"ssl\.keystore\.location") as problem:
        await start_secure(ssl_keystore_location=file, ssl_key_password="guessed")
    assert "guessed" not in str(problem.value)


async def test_metrics_tell_when_certificates_expire(start_secure, connect_to):
    broker = await start_secure(metrics_port=0)
    ask = await connect_to(broker, "SASL_SSL")
    await ask.log_in()
    page = broker.metrics.page().decode()
    [line] = [
        line
        for line in page.splitlines()
        if line.startswith('semel_tls_certificate_expiry_timestamp_seconds{listener="SSL"')
    ]
    days = (float(line.split()[-1]) - time.time()) / 86_400
    assert 29 < days <= 30
    success = 'listener="SASL_SSL",mechanism="PLAIN",outcome="success"'
    assert f"semel_authentications_total{{{success}}} 1.0" in page


# What is wrong with settings is said at the start


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ssl.keystore.location": None}, "needs a key and a certificate"),
        ({"ssl.keystore.location": "/nowhere.pem"}, "No such file"),
        ({"ssl.keystore.key": "x"}, "goes together with"),
        ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type"),
        ({AUTH: "required", "ssl.truststore.location": None}, "whom to trust"),
        ({"ssl.cipher.suites": "NONSENSE"}, "ssl.cipher.suites"),
        ({"ssl.enabled.protocols": "SSLv3"}, "ssl.enabled.protocols"),
        ({"ssl.principal.mapping.rules": "RULE:a"}, "ssl.principal.mapping.rules"),
        ({"listener.name.sasl_ssl.plain.sasl.jaas.config": None}, "PLAIN needs users"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "sasl.enabled.mechanisms"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "jwks.endpoint.url"),
        ({"listener.name.ssl.num.partitions": "3"}, "Unknown setting"),
    ],
)
async def test_a_listener_that_cannot_work_keeps_the_broker_from_starting(
    start_secure, settings, words
):
    if "listener.name.sasl_ssl.plain.sasl.jaas.config" in settings:
        settings = settings | {"listeners": "SASL_SSL://127.0.0.1:0"}
    with pytest.raises(BadSetting, match=words):
        await start_secure(settings)
