"""OAUTHBEARER on the broker: which tokens are believed, and how often keys are read."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from semel.broker.server import Broker
from semel.client import Admin
from semel.core.access.sasl import Refused
from semel.core.access.tokens import BearerServer, Believed, TokenRules, read_message
from semel.net.client_sasl import Bearer
from semel.wire.errors import ErrorCode
from semel.wire.messages.metadata import MetadataRequest

NOW_MS = 1_700_000_000_000
METADATA = MetadataRequest(topics=[])


class Issuer:
    """Who signs tokens, and publishes the keys to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.publish()

    def publish(self, **more: Any) -> None:
        keys = [
            {**json.loads(RSAAlgorithm.to_jwk(self.rsa.public_key())), "kid": "r", "use": "sig"},
            {**json.loads(ECAlgorithm.to_jwk(self.ec.public_key())), "kid": "e", "alg": "ES256"},
            {"kty": "of the future", "kid": "f"},
            {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "o", "alg": "HS256"},
        ]
        for kid, key in more.items():
            keys.append({**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": kid})
        self.file.write_text(json.dumps({"keys": keys}))

    def token(
        self, key: Any = None, algorithm: str = "RS256", kid: str = "r", **claims: Any
    ) -> str:
        now = int(time.time())
        facts = {"sub": "alice", "iss": "us", "aud": "semel", "iat": now, "exp": now + 600}
        facts |= claims
        facts = {name: value for name, value in facts.items() if value is not None}
        headers = {"kid": kid} if kid else {}
        return jwt.encode(facts, key or self.rsa, algorithm=algorithm, headers=headers)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("issuer") / "jwks.json")


@pytest.fixture
async def oauth(start_secure: Any, issuer: Issuer) -> Broker:
    broker: Broker = await start_secure(
        sasl_enabled_mechanisms="OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url=issuer.file.as_uri(),
        sasl_oauthbearer_expected_issuer="us",
        sasl_oauthbearer_expected_audience="semel,others",
    )
    return broker


def verifier(broker: Broker) -> Any:
    gate = broker.listeners.all["SASL_SSL"].sasl
    assert gate is not None
    return gate.mechanisms._tokens


@pytest.mark.parametrize(("algorithm", "kid"), [("RS256", "r"), ("PS512", "r"), ("ES256", "e")])
async def test_a_signed_token_names_its_bearer(oauth, connect_to, issuer, algorithm, kid):
    key = issuer.ec if kid == "e" else issuer.rsa
    ask = await connect_to(oauth, "SASL_SSL")
    answer = await ask.authenticate("OAUTHBEARER", Bearer(issuer.token(key, algorithm, kid)))
    assert answer.error_code == 0
    assert 0 < answer.session_lifetime_ms <= 600_000  # the token's, without being asked for
    assert (await ask(METADATA, 4)).brokers
    (connection,) = oauth.listeners.all["SASL_SSL"].net.connections
    assert str(connection.principal) == "User:alice"


async def test_our_client_comes_in_by_a_function_that_gets_tokens(oauth, issuer, authority):
    async with Admin(
        oauth.bootstrap_servers_of("SASL_SSL"),
        security_protocol="SASL_SSL",
        ssl_cafile=str(authority.file),
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token=issuer.token,
    ) as admin:
        assert (await admin.describe_cluster()).brokers


def forged(issuer: Issuer, kind: str) -> str:
    """Tokens that nobody should believe."""
    public = issuer.rsa.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    now = int(time.time())
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    good = issuer.token()
    return {
        "alg=none": lambda: jwt.encode(_parts(good)[1], None, "none", {"kid": "r"}),
        "alg=None": lambda: _with_header(good, alg="None"),
        "signed with the public key as a secret": lambda: _hs256(good, public),
        "signed with a published secret": lambda: issuer.token("secret" * 6, "HS256", "o"),
        "signed by somebody else": lambda: issuer.token(other),
        "of an unknown key": lambda: issuer.token(kid="unknown"),
        "of another kind of key": lambda: issuer.token(issuer.rsa, "RS256", "e"),
        "expired": lambda: issuer.token(exp=now - 60),
        "without an end": lambda: issuer.token(exp=None),
        "not yet good": lambda: issuer.token(nbf=now + 600),
        "issued in the future": lambda: issuer.token(iat=now + 600),
        "of another issuer": lambda: issuer.token(iss="them"),
        "for somebody else": lambda: issuer.token(aud="them"),
        "of nobody": lambda: issuer.token(sub=" "),
        "without a subject": lambda: issuer.token(sub=None),
        "with its signature cut off": lambda: good.rpartition(".")[0] + ".",
        "with other claims": lambda: _with_claims(good),
        "no token": lambda: "abc",
        "of three dots": lambda: "a.b.c",
    }[kind]()


def _parts(token: str) -> list[dict[str, Any]]:
    import base64

    return [json.loads(base64.urlsafe_b64decode(p + "==")) for p in token.split(".")[:2]]


def _part(facts: dict[str, Any]) -> str:
    import base64

    return base64.urlsafe_b64encode(json.dumps(facts).encode()).decode().rstrip("=")


def _with_header(token: str, **more: Any) -> str:
    header, _ = _parts(token)
    return ".".join((_part(header | more), *token.split(".")[1:]))


def _with_claims(token: str) -> str:
    _, claims = _parts(token)
    head, _, signature = token.split(".")
    return f"{head}.{_part(claims | {'sub': 'root'})}.{signature}"


def _hs256(token: str, secret: bytes) -> str:
    import base64
    import hmac

    header, claims = _parts(token)
    signed = f"{_part(header | {'alg': 'HS256'})}.{_part(claims)}"
    signature = hmac.digest(secret, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@pytest.mark.parametrize(
    "kind",
    ["alg=none", "alg=None", "signed with the public key as a secret",
     "signed with a published secret", "signed by somebody else", "of an unknown key",
     "of another kind of key", "expired", "without an end", "not yet good", "issued in the future",
     "of another issuer", "for somebody else", "of nobody", "without a subject",
     "with its signature cut off", "with other claims", "no token", "of three dots"],
)  # fmt: skip
async def test_a_token_that_nobody_should_believe_is_refused(oauth, connect_to, issuer, kind):
    ask = await connect_to(oauth, "SASL_SSL")
    await ask.handshake("OAUTHBEARER")
    answer = await ask.token(Bearer(forged(issuer, kind)).first())
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b'{"status":"invalid_token"}')
    end = await ask.token(b"\x01")  # as RFC 7628 has clients answer that
    assert end.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert await ask.is_closed()


async def test_unknown_keys_in_floods_do_not_make_the_broker_ask_again(oauth, connect_to, issuer):
    for number in range(30):
        ask = await connect_to(oauth, "SASL_PLAINTEXT")
        await ask.handshake("OAUTHBEARER")
        await ask.token(Bearer(issuer.token(kid=f"unknown-{number}")).first())
    gate = oauth.listeners.all["SASL_PLAINTEXT"].sasl
    assert gate.mechanisms._tokens.readings == 1


async def test_a_new_key_is_found_when_a_token_names_it(oauth, connect_to, issuer, monkeypatch):
    ask = await connect_to(oauth, "SASL_SSL")
    assert (await ask.authenticate("OAUTHBEARER", Bearer(issuer.token()))).error_code == 0
    new = ec.generate_private_key(ec.SECP256R1())
    issuer.publish(fresh=new)
    real = Broker.now_ms
    tokens = verifier(oauth)
    monkeypatch.setattr(tokens, "_now_ms", lambda: real() + 11_000)
    ask = await connect_to(oauth, "SASL_SSL")
    answer = await ask.authenticate("OAUTHBEARER", Bearer(issuer.token(new, "ES256", "fresh")))
    assert answer.error_code == 0
    assert tokens.readings == 2


async def test_keys_that_cannot_be_read_keep_the_old_ones(oauth, connect_to, issuer, monkeypatch):
    ask = await connect_to(oauth, "SASL_SSL")
    assert (await ask.authenticate("OAUTHBEARER", Bearer(issuer.token()))).error_code == 0
    issuer.file.write_text("no json")
    tokens = verifier(oauth)
    real = Broker.now_ms
    monkeypatch.setattr(tokens, "_now_ms", lambda: real() + 11_000)
    other = await connect_to(oauth, "SASL_SSL")
    await other.handshake("OAUTHBEARER")
    await other.token(Bearer(issuer.token(kid="unknown")).first())
    assert tokens.readings == 2
    issuer.publish()
    again = await connect_to(oauth, "SASL_SSL")
    assert (await again.authenticate("OAUTHBEARER", Bearer(issuer.token()))).error_code == 0


async def test_keys_come_from_a_web_server_too(start_secure, connect_to, issuer):
    asked = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        text = issuer.file.read_bytes()
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    broker = await start_secure(
        sasl_enabled_mechanisms="OAUTHBEARER",
        sasl_oauthbearer_jwks_endpoint_url=f"http://127.0.0.1:{port}/keys",
    )
    ask = await connect_to(broker, "SASL_SSL")
    assert (await ask.authenticate("OAUTHBEARER", Bearer(issuer.token()))).error_code == 0
    assert asked[0].startswith(b"GET /keys ")
    server.close()


# The rules alone


def test_a_clock_that_is_off_a_little_is_allowed_for() -> None:
    rules = TokenRules(skew_seconds=30)
    now = NOW_MS // 1000
    assert rules.judge({"sub": "a", "exp": now - 29}, NOW_MS) == Believed("a", NOW_MS - 29_000)
    with pytest.raises(Refused):
        rules.judge({"sub": "a", "exp": now - 31}, NOW_MS)
    rules.judge({"sub": "a", "exp": now + 60, "nbf": now + 29}, NOW_MS)
    with pytest.raises(Refused):
        rules.judge({"sub": "a", "exp": now + 60, "nbf": now + 31}, NOW_MS)


@pytest.mark.parametrize("exp", ["soon", True, -1, float("nan"), float("inf"), None, [1]])
def test_an_end_that_is_no_time_is_refused(exp: object) -> None:
    with pytest.raises(Refused):
        TokenRules().judge({"sub": "a", "exp": exp}, NOW_MS)


@pytest.mark.parametrize(
    "message",
    [b"", b"n,,\x01\x01", b"n,,\x01auth=Basic abc\x01\x01", b"n,,\x01auth=Bearer a b\x01\x01",
     b"y,,\x01auth=Bearer a\x01\x01", b"n,,\x01auth=Bearer a\x01", b"\xff\xfe"],
)  # fmt: skip
def test_a_message_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(Refused):
        read_message(message)


def test_nobody_acts_for_somebody_else() -> None:
    server = BearerServer(lambda token: Believed("alice", 5))
    with pytest.raises(Refused, match="different from the token's principal name"):
        server.answer(b"n,a=bob,\x01auth=Bearer t\x01\x01")
    server = BearerServer(lambda token: Believed("alice", 5))
    assert server.answer(b"n,a=alice,\x01auth=Bearer t\x01ext=1\x01\x01") == b""
    assert (server.user, server.expires_at_ms) == ("alice", 5)
