"""Share groups, streams groups and votes, asked of an Apache Kafka 4.3.1 without their features
and of Semel, which has none of them: both tell of the APIs, and refuse alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.messages import request_class
from semel.wire.messages.api_versions import ApiVersionsRequest
from semel.wire.messages.describe_cluster import DescribeClusterRequest
from semel.wire.messages.update_features import UpdateFeaturesRequest
from semel.wire.schema import Message, Struct

pytestmark = pytest.mark.interop

SHARE, STREAMS = "share.version", "streams.version"
SAFE_DOWNGRADE = 2
ID = UUID(int=2**127 + 5)
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "forget a broker that is not there": (64, {"broker_id": 99}),
    "join a share group": (
        76,
        {"group_id": "g", "member_id": "m", "subscribed_topic_names": ["t"]},
    ),
    "join no share group": (76, {"group_id": "", "member_id": ""}),
    "describe share groups": (77, {"group_ids": ["a", "b"]}),
    "describe no share groups": (77, {}),
    "fetch": (78, {"group_id": "g", "member_id": "m"}),
    "acknowledge": (79, {"group_id": "g", "member_id": "m"}),
    "one vote less": (81, {"cluster_id": None, "voter_id": 2, "voter_directory_id": ID}),
    "join a streams group": (88, {"group_id": "g", "member_id": "m"}),
    "describe streams groups": (89, {"group_ids": ["a", "b"]}),
    "describe no offsets": (90, {}),
    "alter offsets": (91, {"group_id": "g"}),
    "delete offsets": (92, {"group_id": "g"}),
}
#: What brokers ask each other, and the structure in which they name a topic.
STATE = {
    83: "InitializeStateData",
    84: "ReadStateData",
    85: "WriteStateData",
    86: "DeleteStateData",
    87: "ReadStateSummaryData",
}


def cases() -> Iterator[tuple[str, Message]]:
    for name, (key, fields) in CASES.items():
        yield name, request_class(key)(**fields)
    for key, data in STATE.items():
        cls: Any = request_class(key)
        topic = getattr(cls, data)(topic_id=ID, partitions=[cls.PartitionData(partition=3)])
        yield f"state {key}", cls(group_id="g", topics=[topic])
        yield f"state {key} of no group", cls(group_id="", topics=[topic])
    vote: Any = request_class(80)
    listener = vote.Listener(name="CONTROLLER", host="127.0.0.1", port=1)
    yield (
        "one more vote",
        vote(cluster_id=None, voter_id=2, voter_directory_id=ID, listeners=[listener]),
    )
    offsets: Any = request_class(90)
    group = offsets.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    yield "describe offsets", offsets(groups=[group])


def plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in value.FIELDS}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[RawClient, RawClient]]:
    with (
        ApacheKafka() as kafka,
        SemelProcess() as semel,
        RawClient(kafka.bootstrap) as theirs,
        RawClient(semel.bootstrap) as ours,
    ):
        for feature in (SHARE, STREAMS):
            update = UpdateFeaturesRequest.FeatureUpdateKey(
                feature=feature, max_version_level=0, upgrade_type=SAFE_DOWNGRADE
            )
            answer = theirs.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
            assert answer.error_code == 0, answer.error_message
        while {SHARE, STREAMS} & {one.name for one in versions(theirs).finalized_features}:
            pass  # its broker hears of it a moment later
        yield theirs, ours


def versions(broker: RawClient) -> Any:
    asked = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    return broker.ask(asked, 4)


@pytest.mark.parametrize(("case", "request_"), cases(), ids=[name for name, _ in cases()])
def test_what_we_do_not_have_is_refused_as_kafka_refuses_it(
    case: str, request_: Message, brokers: tuple[RawClient, RawClient]
) -> None:
    for version in request_.VERSIONS:
        theirs, ours = (plain(broker.ask(request_, version)) for broker in brokers)
        assert ours == theirs, f"version {version}"


@pytest.mark.parametrize("key", [80, 81])
def test_a_vote_in_another_cluster_is_refused_as_kafka_refuses_it(
    key: int, brokers: tuple[RawClient, RawClient]
) -> None:
    heard = []
    for broker in brokers:
        own = broker.ask(DescribeClusterRequest(), 0).cluster_id
        request = request_class(key)(cluster_id="other", voter_directory_id=ID)
        answer = broker.ask(request, 0)
        heard.append((answer.error_code, answer.error_message.replace(own, "OWN")))
    assert heard[0] == heard[1]


def test_we_tell_of_the_very_apis_that_kafka_tells_of(brokers: tuple[RawClient, RawClient]) -> None:
    told = [
        {one.api_key: (one.min_version, one.max_version) for one in versions(broker).api_keys}
        for broker in brokers
    ]
    assert told[0] == told[1]
