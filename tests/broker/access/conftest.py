"""A broker with one listener of each protocol, users, and certificates."""

import asyncio
import hashlib
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker.conftest import Asker
from tests.support.certificates import Authority

from semel.broker.server import Broker
from semel.net.client_sasl import Exchange, Plain, Scram
from semel.net.watching import new_loop
from semel.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest

PASSWORD = "a-secret-of-alice's"
LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="x" password="y" user_alice="{PASSWORD}" user_bob="another" ;'
)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"the broker's own loop": new_loop}


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def server_pem(authority: Authority) -> Path:
    return authority.issue("CN=localhost")


Secure = Callable[..., Awaitable[Broker]]


@pytest.fixture
async def start_secure(
    tmp_path: Path, authority: Authority, server_pem: Path
) -> AsyncIterator[Secure]:
    """Starts brokers with four listeners; keywords of settings have underscores for dots."""
    brokers = []

    async def start(more: dict[str, Any] | None = None, **settings: Any) -> Broker:
        given = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
            "ssl.keystore.location": str(server_pem),
            "ssl.truststore.location": str(authority.file),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
            "connection.failed.authentication.delay.ms": 0,
        }
        given |= {name.replace("_", "."): value for name, value in settings.items()}
        broker = Broker(tmp_path / "data", settings=given | (more or {}))
        await broker.start()
        brokers.append(broker)
        return broker

    yield start
    for broker in brokers:
        await broker.stop()


@pytest.fixture
async def secure(start_secure: Secure) -> Broker:
    return await start_secure()


class SaslAsker(Asker):
    """A connection to a listener, and the words of SASL."""

    async def handshake(self, mechanism: str, version: int = 1) -> Any:
        return await self(SaslHandshakeRequest(mechanism=mechanism), version)

    async def token(self, token: bytes) -> Any:
        return await self(SaslAuthenticateRequest(auth_bytes=token), 2)

    async def authenticate(self, mechanism: str, exchange: Exchange) -> Any:
        """The last answer of an exchange."""
        offer = await self.handshake(mechanism)
        assert offer.error_code == 0, offer
        message: bytes | None = exchange.first()
        while message is not None:
            answer = await self.token(message)
            if answer.error_code:
                return answer
            message = exchange.next(bytes(answer.auth_bytes))
        return answer

    async def log_in(self, user: str = "alice", password: str = PASSWORD) -> Any:
        return await self.authenticate("PLAIN", Plain(user, password))

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read() == b""
        except (ConnectionError, ssl.SSLError):
            return True


Connect = Callable[..., Awaitable[SaslAsker]]


@pytest.fixture
async def connect_to(authority: Authority) -> AsyncIterator[Connect]:
    """Connects to a broker's listener by its name, with TLS where that has it."""
    writers = []

    async def connect(broker: Broker, listener: str, context: Any = None) -> SaslAsker:
        host, _, port = broker.bootstrap_servers_of(listener).rpartition(":")
        if context is None and listener.endswith("SSL"):
            context = ssl.create_default_context(cafile=authority.file)
        reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        writers.append(writer)
        return SaslAsker(reader, writer)

    yield connect
    for writer in writers:
        writer.transport.abort()


def scram_upsertion(
    user: str, password: str, mechanism: int = 1, iterations: int = 4096
) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    digest, salt = ("sha256", "sha512")[mechanism - 1], os.urandom(20)
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations),
    )


@pytest.fixture
def add_user(connect_to: Connect) -> Callable[..., Awaitable[None]]:
    """Gives a user SCRAM credentials of both mechanisms."""

    async def add(broker: Broker, user: str = "alice", password: str = PASSWORD) -> None:
        ask = await connect_to(broker, "PLAINTEXT")
        for mechanism in (1, 2):
            upsertion = scram_upsertion(user, password, mechanism)
            response = await ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
            assert [result.error_code for result in response.results] == [0]

    return add


def scram(mechanism: str, user: str, password: str) -> Scram:
    return Scram("sha256" if mechanism.endswith("256") else "sha512", user, password)
