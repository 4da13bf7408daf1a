"""Bad batches to Apache Kafka 4.3.1 and to Semel: which records the answers name, and how."""

import re
import time
import uuid
from typing import Any

import pytest
from tests.support.brokers.apache_kafka import ApacheKafka
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.batches import BatchBuilder
from semel.wire.compression import Compression
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.produce import ProduceRequest

pytestmark = pytest.mark.interop

#: Kafka's controller made the topic; its broker hears of it a moment later.
NOT_YET = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER
NOW_MS = time.time_ns() // 1_000_000
LONG_AGO_MS = NOW_MS - 10**9
LATER_MS = NOW_MS + 10**9
COUNT = 30
COMPACTED = {"cleanup.policy": "compact"}
TIMELY = {"message.timestamp.before.max.ms": "600000", "message.timestamp.after.max.ms": "600000"}

#: What is asked for: the topic's settings, the records' keys and times by number.
BATCHES: dict[str, tuple[dict[str, str], dict[int, Any], dict[int, int]]] = {
    "some have no key": (COMPACTED, {0: None, 10: None, 20: None}, {}),
    "one has no key": (COMPACTED, {4: None}, {}),
    "none has a key": (COMPACTED, dict.fromkeys(range(COUNT)), {}),
    "the first and another are too old": (TIMELY, {}, {0: LONG_AGO_MS, 7: LONG_AGO_MS}),
    "two are too new": (TIMELY, {}, {3: LATER_MS, 7: LATER_MS}),
    "no key, too new": (COMPACTED | TIMELY, {1: None, 2: None}, {2: LATER_MS, 7: LATER_MS}),
    "no key, an older one in between": (COMPACTED | TIMELY, {1: None}, {7: LONG_AGO_MS}),
    "all is well": (COMPACTED | TIMELY, {}, {}),
}


def build(keys: dict[int, Any], times: dict[int, int], codec: Compression) -> bytes:
    builder = BatchBuilder(codec)
    for number in range(COUNT):
        builder.append(keys.get(number, b"k"), b"v", times.get(number, NOW_MS))
    return bytes(builder.build())


class Broker(RawClient):
    """One of the two."""

    def create(self, configs: dict[str, str]) -> str:
        name = f"t-{uuid.uuid4().hex[:8]}"
        Topic, Config = CreateTopicsRequest.CreatableTopic, CreateTopicsRequest.CreatableTopicConfig
        wanted = Topic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[Config(name=key, value=value) for key, value in configs.items()],
        )
        [made] = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7).topics
        assert made.error_code == 0, made.error_message
        return name

    def produce(self, topic: str, batch: bytes, version: int) -> dict[str, Any]:
        """The answer, without what differs from one moment or topic to the next."""
        part = ProduceRequest.PartitionProduceData(index=0, records=batch)
        data = ProduceRequest.TopicProduceData(name=topic, partition_data=[part])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
        while True:
            [answer] = self.ask(request, version).responses[0].partition_responses
            if answer.error_code not in NOT_YET:
                break

        def plain(text: str | None) -> str | None:
            return text and re.sub(r"within \[.*\]", "within […]", text).replace(topic, "t")

        return {
            "error": ErrorCode(answer.error_code).name,
            "offset": answer.base_offset,
            "log start": answer.log_start_offset,
            "message": plain(answer.error_message),
            "records": [
                (error.batch_index, plain(error.batch_index_error_message))
                for error in answer.record_errors
            ],
        }


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP], ids=lambda c: c.name)
@pytest.mark.parametrize("case", BATCHES)
def test_bad_records_are_named_alike(
    case: str, codec: Compression, apache_kafka: ApacheKafka, semel: SemelProcess
) -> None:
    configs, keys, times = BATCHES[case]
    heard = []
    for bootstrap in (apache_kafka.bootstrap, semel.bootstrap):
        with Broker(bootstrap) as broker:
            topic = broker.create(configs)
            batch = build(keys, times, codec)
            heard.append([broker.produce(topic, batch, version) for version in (7, 8, 12)])
    assert heard[0] == heard[1]
