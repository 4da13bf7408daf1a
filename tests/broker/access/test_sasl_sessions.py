"""SASL on the broker: who is let in, what a stranger may ask for, and sessions that end."""

import base64
import logging
import os

import pytest
from tests.broker.access.conftest import PASSWORD, scram, scram_upsertion

from semel.broker.access.sessions import SOONEST_AGAIN_MS
from semel.broker.server import Broker
from semel.net.client_sasl import Plain
from semel.wire.errors import ErrorCode
from semel.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from semel.wire.messages.api_versions import ApiVersionsRequest
from semel.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from semel.wire.messages.metadata import MetadataRequest

SASL = ("SASL_PLAINTEXT", "SASL_SSL")
METADATA = MetadataRequest(topics=[])


def principals(broker: Broker, listener: str) -> set[str]:
    return {str(one.principal) for one in broker.listeners.all[listener].net.connections}


@pytest.mark.parametrize("listener", SASL)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_who_knows_the_password_is_let_in_under_their_name(
    secure, connect_to, add_user, listener, mechanism
):
    await add_user(secure)
    ask = await connect_to(secure, listener)
    assert (await ask(ApiVersionsRequest(), 0)).error_code == 0
    plain = mechanism == "PLAIN"
    exchange = Plain("alice", PASSWORD) if plain else scram(mechanism, "alice", PASSWORD)
    answer = await ask.authenticate(mechanism, exchange)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert (await ask(METADATA, 4)).brokers[0].port == secure.listeners.all[listener].net.port
    assert principals(secure, listener) == {"User:alice"}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", PASSWORD)])
async def test_a_wrong_password_and_a_user_that_is_not_there_look_the_same(
    secure, connect_to, add_user, mechanism, user, password
):
    await add_user(secure)
    ask = await connect_to(secure, "SASL_SSL")
    answer = await ask.authenticate(mechanism, scram(mechanism, user, password))
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        f"mechanism {mechanism}"
    )
    assert await ask.is_closed()


async def test_a_user_that_is_not_there_has_the_same_salt_each_time(secure, connect_to):
    def challenge(answer):
        return dict(part.split("=", 1) for part in bytes(answer.auth_bytes).decode().split(","))

    seen = []
    for _ in range(2):
        ask = await connect_to(secure, "SASL_PLAINTEXT")
        await ask.handshake("SCRAM-SHA-256")
        seen.append(challenge(await ask.token(b"n,,n=nobody,r=abc")))
    assert seen[0]["s"] == seen[1]["s"]
    assert seen[0]["i"] == "4096"
    assert seen[0]["r"] != seen[1]["r"]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"bob\0alice\0" + PASSWORD.encode(), "Client requested an authorization id that is diff"),
        (b"\xff\xfe\0\0", "invalid credentials with SASL mechanism PLAIN"),
    ],
)
async def test_plain_refuses_in_kafkas_words(secure, connect_to, message, told):
    ask = await connect_to(secure, "SASL_PLAINTEXT")
    await ask.handshake("PLAIN")
    answer = await ask.token(message)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert told in answer.error_message
    assert await ask.is_closed()


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,", b"y,,n=alice,r=x", b"n,,n=alice", b"n,,n=al=ice,r=x", b"\xff", b"n,,n=a,r=",
     b"n,,n=alice,r=x,tokenauth=true"],
)  # fmt: skip
async def test_a_scram_message_that_is_none_is_refused(secure, connect_to, add_user, message):
    await add_user(secure)
    ask = await connect_to(secure, "SASL_PLAINTEXT")
    await ask.handshake("SCRAM-SHA-256")
    answer = await ask.token(message)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("change", ["nonce", "binding", "proof", "short proof", "no base64"])
async def test_a_scram_proof_that_was_tampered_with_is_refused(
    secure, connect_to, add_user, change
):
    await add_user(secure)
    ask = await connect_to(secure, "SASL_PLAINTEXT")
    await ask.handshake("SCRAM-SHA-256")
    exchange = scram("SCRAM-SHA-256", "alice", PASSWORD)
    first = await ask.token(exchange.first())
    good = exchange.next(bytes(first.auth_bytes)).decode()
    proof = good.rpartition(",p=")[2]
    bad = {
        "nonce": good.replace(",r=", ",r=x"),
        "binding": good.replace("c=biws", "c=eSws"),
        "proof": good.replace(proof, base64.b64encode(bytes(32)).decode()),
        "short proof": good.replace(proof, ""),
        "no base64": good.replace(proof, "=abc"),
    }[change]
    answer = await ask.token(bad.encode())
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert await ask.is_closed()


@pytest.mark.parametrize("listener", SASL)
async def test_a_stranger_may_ask_for_nothing_else(secure, connect_to, listener):
    ask = await connect_to(secure, listener)
    ask.send(METADATA, 4)
    assert await ask.is_closed()


async def test_between_handshake_and_proof_nothing_else_is_answered(secure, connect_to):
    ask = await connect_to(secure, "SASL_PLAINTEXT")
    await ask.handshake("PLAIN")
    ask.send(METADATA, 4)
    assert await ask.is_closed()


async def test_requests_sent_behind_the_proof_wait_for_it(secure, connect_to):
    ask = await connect_to(secure, "SASL_PLAINTEXT")
    from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
    from semel.wire.messages.sasl_handshake import SaslHandshakeRequest

    ask.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    ask.send(SaslAuthenticateRequest(auth_bytes=Plain("alice", PASSWORD).first()), 2)
    ask.send(METADATA, 4)
    assert (await ask.receive(17, 1)).error_code == 0
    assert (await ask.receive(36, 2)).error_code == 0
    assert (await ask.receive(3, 4)).brokers


async def test_a_frame_of_a_stranger_is_small(start_secure, connect_to):
    broker = await start_secure(sasl_server_max_receive_size=1000)
    ask = await connect_to(broker, "SASL_PLAINTEXT")
    ask.writer.write((1001).to_bytes(4, "big"))
    assert await ask.is_closed()
    ask = await connect_to(broker, "SASL_PLAINTEXT")
    await ask.log_in()
    many = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t" * 200)] * 10)
    many.allow_auto_topic_creation = False
    assert len((await ask(many, 4)).topics) == 10


async def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(
    start_secure, connect_to
):
    broker = await start_secure({"listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-512"})
    ask = await connect_to(broker, "SASL_SSL")
    offer = await ask.handshake("PLAIN")
    assert offer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert offer.mechanisms == ["SCRAM-SHA-512"]
    assert await ask.is_closed()


async def test_a_stranger_who_says_nothing_is_closed_in_time(start_secure, connect_to):
    broker = await start_secure(connection_authentication_timeout_ms=50)
    for listener in ("SSL", *SASL):
        ask = await connect_to(broker, listener)
        if listener != "SSL":
            assert await ask.is_closed()
    known = await connect_to(broker, "SASL_PLAINTEXT")
    await known.log_in()
    silent = await connect_to(broker, "SASL_PLAINTEXT")
    assert await silent.is_closed()  # later than the other one came
    assert (await known(METADATA, 4)).brokers


async def test_old_clients_send_tokens_without_a_request_around_them(secure, connect_to):
    """Version 0 of SaslHandshake, as before KIP-152."""
    ask = await connect_to(secure, "SASL_PLAINTEXT")
    assert (await ask.handshake("PLAIN", version=0)).error_code == 0
    token = Plain("alice", PASSWORD).first()
    ask.writer.write(len(token).to_bytes(4, "big") + token)
    assert await ask.receive_frame() == b""
    assert (await ask(METADATA, 4)).brokers
    wrong = await connect_to(secure, "SASL_PLAINTEXT")
    await wrong.handshake("PLAIN", version=0)
    token = Plain("alice", "wrong").first()
    wrong.writer.write(len(token).to_bytes(4, "big") + token)
    assert await wrong.is_closed()


async def test_on_a_plaintext_listener_nobody_is_asked(secure, connect_to):
    ask = await connect_to(secure, "PLAINTEXT")
    assert (await ask.handshake("PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE


# Sessions that end (KIP-368)


@pytest.fixture
def clock(monkeypatch):
    """The broker's own time of day, which jumps when told to."""
    ahead = [0]
    real = Broker.now_ms
    monkeypatch.setattr(Broker, "now_ms", staticmethod(lambda: real() + ahead[0]))

    def forward(ms):
        ahead[0] += ms

    return forward


async def test_a_session_is_told_its_lifetime_and_renewed_in_it(start_secure, connect_to, clock):
    broker = await start_secure(connections_max_reauth_ms=3_600_000)
    ask = await connect_to(broker, "SASL_SSL")
    assert (await ask.log_in()).session_lifetime_ms == 3_600_000
    assert (await ask.handshake("PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE  # too soon
    clock(SOONEST_AGAIN_MS)
    assert (await ask.log_in()).session_lifetime_ms == 3_600_000
    assert (await ask(METADATA, 4)).brokers


async def test_nobody_becomes_somebody_else_by_authenticating_anew(start_secure, connect_to, clock):
    broker = await start_secure(connections_max_reauth_ms=3_600_000)
    ask = await connect_to(broker, "SASL_SSL")
    other = await connect_to(broker, "SASL_SSL")
    await ask.log_in()
    await other.log_in()
    clock(SOONEST_AGAIN_MS)
    answer = await ask.log_in("bob", "another")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert await ask.is_closed()
    assert (await other(METADATA, 4)).brokers


async def test_the_mechanism_stays_the_same(start_secure, connect_to, add_user, clock):
    broker = await start_secure(connections_max_reauth_ms=3_600_000)
    await add_user(broker)
    ask = await connect_to(broker, "SASL_PLAINTEXT")
    await ask.log_in()
    clock(SOONEST_AGAIN_MS)
    exchange = scram("SCRAM-SHA-256", "alice", PASSWORD)
    answer = await ask.authenticate("SCRAM-SHA-256", exchange)
    assert "is not supported for re-authentication of mechanism 'PLAIN'" in answer.error_message


async def test_an_ended_session_is_closed_by_its_next_request(start_secure, connect_to, until):
    broker = await start_secure(connections_max_reauth_ms=20)
    ask = await connect_to(broker, "SASL_PLAINTEXT")
    await ask.log_in()
    (connection,) = broker.listeners.all["SASL_PLAINTEXT"].net.connections
    await until(lambda: connection.session.state.name == "EXPIRED")
    ask.send(METADATA, 4)
    assert await ask.is_closed()


async def test_an_ended_session_may_still_be_renewed(start_secure, connect_to, until):
    broker = await start_secure(connections_max_reauth_ms=20)
    ask = await connect_to(broker, "SASL_PLAINTEXT")
    await ask.log_in()
    (connection,) = broker.listeners.all["SASL_PLAINTEXT"].net.connections
    await until(lambda: connection.session.state.name == "EXPIRED")
    assert (await ask.log_in()).error_code == 0


# Credentials


async def test_credentials_are_described_without_their_keys(secure, connect_to, add_user):
    await add_user(secure)
    ask = await connect_to(secure, "PLAINTEXT")
    everybody = await ask(DescribeUserScramCredentialsRequest(users=None), 0)
    [alice] = everybody.results
    assert alice.user == "alice"
    assert [(i.mechanism, i.iterations) for i in alice.credential_infos] == [(1, 4096), (2, 4096)]


async def test_a_removed_credential_lets_nobody_in(secure, connect_to, add_user):
    await add_user(secure)
    ask = await connect_to(secure, "PLAINTEXT")
    gone = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="alice", mechanism=1)
    response = await ask(AlterUserScramCredentialsRequest(deletions=[gone]), 0)
    assert [result.error_code for result in response.results] == [0]
    again = await ask(AlterUserScramCredentialsRequest(deletions=[gone]), 0)
    assert again.results[0].error_code == ErrorCode.RESOURCE_NOT_FOUND
    for mechanism, code in (("SCRAM-SHA-256", 58), ("SCRAM-SHA-512", 0)):
        stranger = await connect_to(secure, "SASL_SSL")
        answer = await stranger.authenticate(mechanism, scram(mechanism, "alice", PASSWORD))
        assert answer.error_code == code


async def test_a_user_is_changed_once_in_a_request(secure, connect_to):
    ask = await connect_to(secure, "PLAINTEXT")
    twice = [scram_upsertion("alice", "a", 1), scram_upsertion("alice", "b", 2)]
    other = scram_upsertion("bob", "c")
    response = await ask(AlterUserScramCredentialsRequest(upsertions=[*twice, other]), 0)
    assert {one.user: one.error_code for one in response.results} == {
        "alice": ErrorCode.DUPLICATE_RESOURCE,
        "bob": 0,
    }


async def test_credentials_survive_a_restart_and_no_file_is_for_others(
    start_secure, connect_to, add_user, tmp_path
):
    first = await start_secure()
    await add_user(first)
    await first.stop()
    journal = tmp_path / "data" / "metadata.log"
    assert journal.stat().st_mode & 0o777 == 0o600
    assert PASSWORD.encode() not in journal.read_bytes()
    second = await start_secure()
    second.catalog.rewrite(second.catalog.snapshot())
    assert journal.stat().st_mode & 0o777 == 0o600
    await second.stop()
    third = await start_secure()
    ask = await connect_to(third, "SASL_SSL")
    exchange = scram("SCRAM-SHA-512", "alice", PASSWORD)
    assert (await ask.authenticate("SCRAM-SHA-512", exchange)).error_code == 0


async def test_a_journal_of_before_becomes_unreadable_for_others(start_secure, tmp_path):
    first = await start_secure()
    await first.stop()
    os.chmod(tmp_path / "data" / "metadata.log", 0o644)
    await start_secure()
    assert (tmp_path / "data" / "metadata.log").stat().st_mode & 0o777 == 0o600


async def test_no_secret_is_logged_or_shown(secure, connect_to, add_user, caplog):
    caplog.set_level(logging.DEBUG)
    await add_user(secure)
    for user, password in (("alice", PASSWORD), ("alice", "wrong-password")):
        ask = await connect_to(secure, "SASL_SSL")
        await ask.log_in(user, password)
        ask = await connect_to(secure, "SASL_SSL")
        await ask.authenticate("SCRAM-SHA-256", scram("SCRAM-SHA-256", user, password))
    credentials = secure.catalog.credentials
    shown = [
        repr(credentials),
        *map(repr, credentials.values()),
        repr(vars(secure.listeners)),
        repr(secure.settings),
        repr(secure.settings._given),
    ]
    lines = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert any("authentication failed" in line for line in lines)
    for text in (*lines, *shown):
        assert "secret" not in text
        assert "wrong-password" not in text
        for credential in credentials.values():
            assert repr(credential.stored_key) not in text
