"""A broker whose process may open few files: logs and clients share them, and nobody starves."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.brokers.process import SemelProcess
from tests.support.conversations.raw_client import RawClient

from semel.broker.descriptors import LEAST, MOST_FILES, raise_limit, share_out
from semel.wire.batches import BatchBuilder
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.produce import ProduceRequest

FEW = 256
TOPICS = [f"t{number}" for number in range(300)]


@pytest.fixture
def few_files(tmp_path: Path):
    """A broker in a process that may open few files, and may not ask for more."""
    shell = ["/bin/sh", "-c", f'ulimit -n {FEW} && exec "$0" "$@"']

    class Few(SemelProcess):
        def start(self) -> None:
            before = subprocess.Popen
            subprocess.Popen = lambda command, **given: before([*shell, *command], **given)
            try:
                super().start()
            finally:
                subprocess.Popen = before

    with Few(data=tmp_path / "data") as broker:
        yield broker


def produce(client: RawClient, topic: str) -> int:
    builder = BatchBuilder()
    builder.append(None, b"x", 0)
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic_data = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    answer = client.ask(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic_data]), 9)
    return answer.responses[0].partition_responses[0].error_code


def test_more_topics_than_files_are_all_written_and_clients_are_still_accepted(few_files):
    with RawClient(few_files.bootstrap) as client:
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in TOPICS
        ]
        made = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
        assert {topic.error_code for topic in made.topics} == {0}
        assert {produce(client, name) for name in TOPICS * 2} == {0}
        crowd = [RawClient(few_files.bootstrap) for _ in range(FEW)]
        assert {produce(client, name) for name in TOPICS} == {0}
        for one in crowd:
            one.close()
    with RawClient(few_files.bootstrap) as client:
        assert produce(client, TOPICS[0]) == 0


def test_a_pool_gives_files_up_when_the_process_has_no_descriptor_left(tmp_path):
    program = f"""
import resource, uuid
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from semel.store.directory import DiskStore
from semel.wire.batches import BatchBuilder
store = DiskStore({str(tmp_path)!r}, open_files=10)
logs = [store.create(f"t{{number}}", 0, uuid.uuid4()) for number in range(100)]
store.pool.capacity = 1024
for log in logs * 2:
    builder = BatchBuilder()
    builder.append(None, b"x", 0)
    log.append([builder.build(base_offset=log.next_offset)])
    assert bytes(log.read(0, 100, log.next_offset, True))
assert len(store.pool) < 64
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_free_is_shared_and_some_is_kept(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, 4096))
    shares = share_out()
    assert shares.files + shares.connections < 1024
    assert shares.files > 300 < shares.connections
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (50, 50))
    assert share_out() == (LEAST, LEAST)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1 << 20, 1 << 20))
    assert share_out().files == MOST_FILES


def test_a_process_takes_what_the_system_allows(monkeypatch):
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: asked.append(limits))
    raise_limit()
    assert asked == [(4096, 4096)]
