"""Retention, compaction, idle producers, and partitions that come back: what one timer drives."""

import asyncio
import shutil

from semel.broker.server import Broker


def run(broker, coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, broker.loop).result(30)


def fill(talk, build_batch, topic, count, key=b"k", size=200_000):
    for number in range(count):
        answer = talk.produce(topic, build_batch(b"%d" % number + b"x" * size, key=key))
        assert answer.error_code == 0, answer


def test_segments_past_their_retention_go(broker, talk, build_batch, in_loop):
    talk.create("t", segment_bytes="1048576", retention_bytes="1048576")
    fill(talk, build_batch, "t", 20)
    partition = broker.partitions.find("t", 0)
    in_loop(broker, lambda: broker.partitions.housekeeping.retain(partition))
    start = talk.fetch("t", 20).log_start_offset
    assert start > 0
    assert talk.read("t", start)[0].offset == start


def test_a_compacted_topic_keeps_the_last_record_of_each_key(broker, talk, build_batch):
    talk.create("t", cleanup_policy="compact", segment_bytes="1048576")
    talk.produce("t", build_batch(b"only one", key=b"other"))
    fill(talk, build_batch, "t", 20)
    run(broker, broker.partitions.housekeeping.compact())
    offset, found = 0, []
    while True:
        records = talk.read("t", offset)
        if not records:
            break
        found += [(record.key, record.offset) for record in records]
        offset = records[-1].offset + 1
    assert (b"other", 0) in found
    assert found[-1] == (b"k", 20)
    assert len(found) < 10


def test_idle_producers_are_forgotten_after_their_time(broker, talk, build_batch, in_loop):
    talk.create("t")
    talk.produce("t", build_batch(b"a", producer_id=5, epoch=0, sequence=0))
    partition = broker.partitions.find("t", 0)
    broker.settings["producer.id.expiration.ms"] = 60_000
    in_loop(broker, lambda: broker.partitions.housekeeping.expire(partition))
    assert len(partition.state.producers) == 1
    broker.settings["producer.id.expiration.ms"] = -1
    in_loop(broker, lambda: broker.partitions.housekeeping.expire(partition))
    assert len(partition.state.producers) == 0


def test_one_tick_does_whatever_is_due(broker, talk, build_batch):
    talk.create("t", segment_bytes="1048576", retention_bytes="1048576")
    fill(talk, build_batch, "t", 20)
    run(broker, broker.partitions.housekeeping.tick())
    assert talk.fetch("t", 20).log_start_offset == 0
    broker.settings["log.retention.check.interval.ms"] = 0
    run(broker, broker.partitions.housekeeping.tick())
    assert talk.fetch("t", 20).log_start_offset > 0


def test_a_log_that_cannot_be_opened_takes_one_partition_offline_until_it_can(
    tmp_path, new_talk, build_batch, in_loop
):
    with Broker(data=tmp_path) as broker, new_talk(broker.bootstrap_servers) as talk:
        talk.create("t", partitions=2)
        talk.produce("t", build_batch(b"kept"))
    [file] = (tmp_path / "t-0").glob("*.log")
    hidden = file.rename(tmp_path / "hidden")
    file.mkdir()
    with Broker(data=tmp_path) as broker, new_talk(broker.bootstrap_servers) as talk:
        assert talk.produce("t", build_batch(b"v"), 0).error_code == 56
        assert talk.fetch("t", 0, partition=0).error_code == 56
        assert talk.produce("t", build_batch(b"v"), 1).error_code == 0
        file.rmdir()
        hidden.rename(file)
        partition = broker.partitions.find("t", 0)
        in_loop(broker, lambda: broker.partitions.housekeeping.reopen(partition))
        assert talk.produce("t", build_batch(b"more"), 0).base_offset == 1
        assert [record.value for record in talk.read("t")] == [b"kept", b"more"]


def test_leftover_directories_of_deleted_topics_are_removed(tmp_path, new_talk, build_batch):
    for name in ("x", "t"):
        with Broker(data=tmp_path) as broker, new_talk(broker.bootstrap_servers) as talk:
            talk.create(name)
            talk.produce(name, build_batch(b"old"))
    shutil.copytree(tmp_path / "x-0", tmp_path / "kept")
    with Broker(data=tmp_path) as broker:
        broker.loop.call_soon_threadsafe(broker.catalog.delete_topic, "x")
    (tmp_path / "kept").rename(tmp_path / "x-0")
    with Broker(data=tmp_path) as broker, new_talk(broker.bootstrap_servers) as talk:
        assert [record.value for record in talk.read("t")] == [b"old"]
        assert not (tmp_path / "x-0").exists()
