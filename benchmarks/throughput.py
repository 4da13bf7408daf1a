"""Megabytes per second in and out, broker CPU per megabyte and memory, beside Apache Kafka.

librdkafka is the client. Producing is idempotent with acks=all into six partitions; reading is
read_committed. Values are random, so that nothing on the way can be clever about them. The client
shares the machine with the broker, so what a broker saves in CPU shows as throughput.
"""

import os
import time
import uuid
from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.side_by_side import Report, Side, Work, both_brokers, measure

PARTITIONS = 6
MEGABYTE = 1_000_000
# As many as librdkafka takes from one call: it hands a list to C, where a loop in Python would be
# the limit with small records.
RUN = 1_000


def run(rounds: int = 5) -> None:
    report = Report("Throughput")
    with both_brokers() as sides:
        for size, megabytes, produce_goal in ((1024, 600, 1.5), (100, 100, 1.0)):
            topic = f"bench-{size}"
            for side in sides:
                make_topic(side, topic)
            report.add(
                f"produce {size} B",
                measure(
                    sides,
                    produce(topic, size, megabytes),
                    "MB",
                    rounds,
                    megabytes=3 * megabytes,
                ),
                goal=produce_goal,
            )
            report.add(
                f"consume {size} B, read_committed",
                measure(sides, consume(topic, size, megabytes), "MB", rounds),
                goal=0.95,
            )
    report.finish()


Settings = dict[str, str] | None


def make_topic(side: Side, topic: str, client: Settings = None) -> None:
    admin = AdminClient({"bootstrap.servers": side.bootstrap} | (client or {}))
    [future] = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
    future.result()


def produce(
    topic: str, size: int, megabytes: int, client: Settings = None
) -> Callable[[Side], Work]:
    calls = megabytes * MEGABYTE // size // RUN
    messages = [{"value": os.urandom(size)} for _ in range(RUN)]

    def work(side: Side) -> Work:
        producer = Producer(
            {
                "bootstrap.servers": side.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 1 << 19,
            }
            | (client or {})
        )
        producer.list_topics(topic, timeout=30)  # connected before the clock starts
        began = time.perf_counter()
        for call in range(calls):
            while len(producer) > 400_000 or len(producer) * size > 400 * MEGABYTE:
                producer.poll(0.01)
            queued = producer.produce_batch(topic, messages, partition=call % PARTITIONS)
            assert queued == RUN, "librdkafka's queue is full"
            producer.poll(0)
        assert producer.flush(120) == 0
        return Work(calls * RUN * size / MEGABYTE, seconds=time.perf_counter() - began)

    return work


def consume(
    topic: str, size: int, megabytes: int, client: Settings = None
) -> Callable[[Side], Work]:
    wanted = megabytes * MEGABYTE // size // RUN * RUN

    def work(side: Side) -> Work:
        consumer = Consumer(
            {
                "bootstrap.servers": side.bootstrap,
                "group.id": f"bench-{uuid.uuid4()}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "queued.max.messages.kbytes": 1 << 17,
            }
            | (client or {})
        )
        consumer.list_topics(topic, timeout=30)
        began = time.perf_counter()
        consumer.assign(
            [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
        )
        count = 0
        while count < wanted:
            count += len(consumer.consume(min(10_000, wanted - count), timeout=30))
        seconds = time.perf_counter() - began
        consumer.close()
        return Work(count * size / MEGABYTE, seconds=seconds)

    return work


if __name__ == "__main__":
    run()
