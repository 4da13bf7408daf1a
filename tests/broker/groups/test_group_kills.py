"""A broker that is killed in the middle of commits keeps every offset that was heard."""

import random

import pytest
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.offset_commit import OffsetCommitRequest
from semel.wire.messages.offset_fetch import OffsetFetchRequest

COMMIT = 8


def commit(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
    return OffsetCommitRequest(group_id="g", topics=[topic])


def committed(client: RawClient) -> int:
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[wanted])
    found = client.ask(OffsetFetchRequest(groups=[group]), 9)
    offset: int = found.groups[0].topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.parametrize("seed", range(2))
def test_a_heard_commit_survives_a_kill(seed):
    dice = random.Random(seed)
    with SemelProcess() as broker:
        with RawClient(broker.bootstrap) as client:
            topic = CreateTopicsRequest.CreatableTopic(
                name="t", num_partitions=1, replication_factor=1
            )
            client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 5)
        sent = heard = 0
        for _ in range(3):
            with RawClient(broker.bootstrap) as client:
                for _ in range(dice.randrange(20, 200)):
                    client.tell(commit(sent := sent + 1), 9)
                    if dice.random() < 0.7:
                        while heard < sent:
                            answer = client.hear(COMMIT, 9)
                            assert answer.topics[0].partitions[0].error_code == 0
                            heard += 1
                broker.kill()
            broker.start()
            with RawClient(broker.bootstrap) as client:
                found = committed(client)
            assert heard <= found <= sent
            heard = sent = found
