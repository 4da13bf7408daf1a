"""A wrong port: whoever listens there is named at once, not when the time is over."""

import asyncio
import http.server
import shutil
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from semel import Broker
from semel.client import Admin, Consumer, FatalError, Producer
from semel.net.strangers import told_by

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@asynccontextmanager
async def stranger(talk: Talk, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def http_server() -> Iterator[str]:
    """The standard library's, which waits for the end of a line before it says anything."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for localhost and its key, in one file."""
    directory = tmp_path_factory.mktemp("certificate")
    openssl = shutil.which("openssl")
    assert openssl, "this test makes a certificate with openssl"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=localhost", "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    both = directory / "both.pem"
    both.write_text((directory / "key.pem").read_text() + (directory / "cert.pem").read_text())
    return both


async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@pytest.mark.parametrize("client", [Producer, Consumer, Admin])
async def test_an_http_server_is_named_at_once(http_server: str, client: Any) -> None:
    with pytest.raises(FatalError, match=rf"{http_server} is not a Kafka broker.*speaks HTTP"):
        await client(http_server).start()


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it speaks HTTP"),
        (b"220 mail.example.org ESMTP\r\n", "it says '220 mail.example.org ESMTP'"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "it says 'SSH-2.0-OpenSSH_9.6'"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "it speaks TLS: set security_protocol"),
        (b"\xff\xfe\xfd\xfc\x00", "it speaks another protocol"),
    ],
)
async def test_whoever_answers_otherwise_is_named(greeting: bytes, words: str) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(greeting)
        await writer.drain()
        writer.close()

    async with stranger(greet) as address:
        with pytest.raises(FatalError, match="is not a Kafka broker") as caught:
            await Admin(address).start()
    assert words in str(caught.value)


async def test_a_tls_port_spoken_to_in_the_clear_is_named(certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with stranger(nothing, context) as address:
        with pytest.raises(FatalError, match="it speaks TLS: set security_protocol to SSL"):
            await Producer(address).start()


async def test_a_broker_in_the_clear_spoken_to_with_tls_is_named() -> None:
    async with Broker() as broker:
        with pytest.raises(FatalError, match="without TLS: set security_protocol to PLAINTEXT"):
            await Producer(broker.bootstrap_servers, security_protocol="SSL").start()


async def test_a_certificate_that_is_not_trusted_is_said_at_once(certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with stranger(nothing, context) as address:
        with pytest.raises(FatalError, match=r"certificate is not trusted.*ssl_cafile"):
            await Producer(address, security_protocol="SSL").start()


async def test_one_stranger_among_brokers_does_no_harm(http_server: str) -> None:
    async with Broker() as broker:
        servers = [http_server, broker.bootstrap_servers]
        for _ in range(4):  # they are tried in any order
            async with Admin(servers) as admin:
                assert (await admin.describe_cluster()).brokers


@pytest.mark.parametrize("token", [lambda: 1 / 0, lambda: None, lambda: b"bytes"])
async def test_a_function_that_gets_no_token_is_named(token: Any) -> None:
    """Any SASL listener offers it: this one says so, and hears nothing more."""
    async with Broker() as broker, sasl_offered(broker) as address:
        with pytest.raises(FatalError, match="the function given as sasl_oauth_token failed"):
            await Admin(
                address,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="OAUTHBEARER",
                sasl_oauth_token=token,
            ).start()


@asynccontextmanager
async def sasl_offered(broker: Broker) -> AsyncIterator[str]:
    """Passes ApiVersions on to the broker and answers SaslHandshake itself."""
    host, port = broker.bootstrap_servers.rsplit(":", 1)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, ahead = await asyncio.open_connection(host, int(port))
        ahead.write(await framed(reader))
        writer.write(await framed(behind))
        handshake = await framed(reader)
        correlation_id = handshake[8:12]
        offered = b"\0\0" + (1).to_bytes(4, "big") + b"\0\x0bOAUTHBEARER"
        body = correlation_id + offered
        writer.write(len(body).to_bytes(4, "big") + body)
        await reader.read()
        ahead.close()
        writer.close()

    async with stranger(talk) as address:
        yield address


async def framed(reader: asyncio.StreamReader) -> bytes:
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length, "big"))


def test_a_brokers_first_bytes_are_no_strangers() -> None:
    assert told_by((300).to_bytes(4, "big") + b"\0\0\0\0") is None


def test_spark_names_an_http_server_at_once_too(http_server: str) -> None:
    from semel.spark.kafka.client import BlockingCluster, patiently
    from semel.spark.kafka.settings import SparkSettings

    with pytest.raises(FatalError, match=rf"{http_server}: it is not a Kafka broker.*HTTP"):
        patiently(BlockingCluster(SparkSettings.of(http_server)).any, "connecting", 60)
