"""What a large request may ask for: counted before it is served."""

import asyncio

import pytest
from tests.support.conversations.raw_client import RawClient

from semel.wire.messages.api_versions import ApiVersionsRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest


def find(bootstrap, count):
    keys = [f"group-{number}" for number in range(count)]
    with RawClient(bootstrap) as client:
        return client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=keys), 4).coordinators


async def test_a_request_with_too_many_elements_ends_its_connection_and_no_other(broker, caplog):
    with RawClient(broker.bootstrap_servers) as other:
        found = await asyncio.to_thread(find, broker.bootstrap_servers, 20_000)
        assert len(found) == 20_000
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(find, broker.bootstrap_servers, 60_000)
        answer = await asyncio.to_thread(other.ask, ApiVersionsRequest(), 0)
        assert answer.error_code == 0
    reasons = [line.reason for line in caplog.records if hasattr(line, "reason")]
    assert any("more than 50000 elements" in reason for reason in reasons)
