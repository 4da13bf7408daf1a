"""Listeners with names: which address clients are told, limits over all, one warning line."""

import asyncio
import logging

import pytest
from tests.broker.access.conftest import LISTENERS

from semel.broker.server import Broker
from semel.broker.settings.definitions import BadSetting
from semel.wire.messages.describe_cluster import DescribeClusterRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.metadata import MetadataRequest

METADATA = MetadataRequest(topics=[])
NAMED = {
    "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:SASL_SSL",
}


async def test_a_client_is_told_the_address_of_the_listener_it_came_by(start_secure, connect_to):
    jaas = "listener.name.external.plain.sasl.jaas.config"
    broker = await start_secure({**NAMED, jaas: 'x required user_alice="a";'})
    internal = await connect_to(broker, "INTERNAL")
    external = await connect_to(broker, "EXTERNAL", await tls_context(broker))
    assert (await external.log_in("alice", "a")).error_code == 0
    for name, ask in (("INTERNAL", internal), ("EXTERNAL", external)):
        port = broker.listeners.all[name].net.port
        assert (await ask(METADATA, 4)).brokers[0].port == port
        assert (await ask(DescribeClusterRequest(), 0)).brokers[0].port == port
        assert (await ask(FindCoordinatorRequest(key="g"), 0)).port == port


async def tls_context(broker):
    import ssl

    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    return trusting


async def test_what_is_advertised_is_told_by_name(start_secure, connect_to):
    broker = await start_secure(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": "PLAINTEXT://in.example:1,SASL_PLAINTEXT://out.example:2",
        }
    )
    asked = []
    for listener in broker.listeners.all.values():
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.net.port)
        from tests.broker.access.conftest import SaslAsker

        ask = SaslAsker(reader, writer)
        if listener.place.has_sasl:
            await ask.log_in()
        told = (await ask(METADATA, 4)).brokers[0]
        asked.append((told.host, told.port))
        writer.close()
    assert asked == [("in.example", 1), ("out.example", 2)]


async def test_limits_count_the_connections_of_all_listeners(start_secure, connect_to):
    broker = await start_secure(max_connections=2)
    first = await connect_to(broker, "PLAINTEXT")
    second = await connect_to(broker, "SASL_PLAINTEXT")
    third = await connect_to(broker, "PLAINTEXT")
    assert await third.is_closed()
    assert (await first(METADATA, 4)).brokers
    assert (await second.log_in()).error_code == 0


@pytest.mark.parametrize(
    ("listener", "more", "warned"),
    [
        ("PLAINTEXT://0.0.0.0:0", {}, True),
        ("SSL://0.0.0.0:0", {}, True),
        ("SSL://0.0.0.0:0", {"ssl.client.auth": "required"}, False),
        ("SASL_SSL://0.0.0.0:0", {}, False),
        ("PLAINTEXT://127.0.0.1:0", {}, False),
    ],
)
async def test_listening_beyond_this_machine_without_authentication_says_so(
    start_secure, caplog, listener, more, warned
):
    caplog.set_level(logging.WARNING)
    await start_secure({"listeners": listener} | more)
    lines = [one for one in caplog.records if "without authentication" in one.getMessage()]
    assert len(lines) == warned


async def test_all_four_protocols_at_once(secure):
    assert set(secure.listeners.all) == set(LISTENERS)
    assert len({one.net.port for one in secure.listeners.all.values()}) == 4


def test_a_listener_without_a_protocol_is_refused():
    with pytest.raises(BadSetting, match=r"listener\.security\.protocol\.map"):
        Broker(settings={"listeners": "INTERNAL://127.0.0.1:0"})
