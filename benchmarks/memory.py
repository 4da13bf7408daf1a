"""What a broker's memory comes to: idle, while ten gigabytes pass through it, and after.

    python -m benchmarks memory

librdkafka writes and reads rounds of 500 MB in records of 1 KiB; DeleteRecords makes room after
each. Resident memory of the broker's process. Goals: 40 MB idle, 150 MB after.
"""

import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.brokers.process import SemelProcess

from benchmarks.side_by_side import Side, in_memory
from benchmarks.throughput import MEGABYTE, PARTITIONS, consume, produce

TOPIC = "memory"
SIZE = 1024
ROUND_MB = 500
ROUNDS = 20
IDLE_SECONDS = 3


def run(rounds: int = ROUNDS) -> None:
    with in_memory(), SemelProcess() as broker:
        side = Side("Semel", broker.bootstrap, broker.pid)
        time.sleep(IDLE_SECONDS)
        print(f"idle after the start: {side.memory_mb():.0f} MB")
        admin = AdminClient({"bootstrap.servers": side.bootstrap})
        settings = {"segment.bytes": str(64 << 20), "file.delete.delay.ms": "1000"}
        [made] = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=settings)]).values()
        made.result()
        write, read = produce(TOPIC, SIZE, ROUND_MB), consume(TOPIC, SIZE, ROUND_MB)
        moved = 0.0
        for _ in range(rounds):
            moved += write(side).amount
            read(side)
            make_room(admin, side)
        print(
            f"{moved * MEGABYTE / 1e9:.1f} GB written and read, {side.cpu_seconds():.1f} s of CPU"
        )
        print(f"peak: {peak_mb(side):.0f} MB")
        time.sleep(IDLE_SECONDS)
        print(f"after: {side.memory_mb():.0f} MB")


def make_room(admin: AdminClient, side: Side) -> None:
    consumer = Consumer({"bootstrap.servers": side.bootstrap, "group.id": "memory"})
    ends = []
    for index in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, index), timeout=30)
        ends.append(TopicPartition(TOPIC, index, end))
    consumer.close()
    for deleted in admin.delete_records(ends).values():
        deleted.result()


def peak_mb(side: Side) -> float:
    for line in Path(f"/proc/{side.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return side.memory_mb()
