"""One bad client against another's Produce: what the victim feels, and what the broker keeps.

A victim in a process of its own produces 100 bytes every 5 ms. Meanwhile one attack after the other
is made on the same broker; each takes some seconds. The goal is a p99 of 50 ms and bounded memory.
"""

import json
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from tests.support.conversations.raw_client import RawClient

from benchmarks.side_by_side import Side, both_brokers
from semel.wire.batches import BatchBuilder
from semel.wire.compression import Compression
from semel.wire.errors import ProtocolError
from semel.wire.frames import RequestHeader, encode_request
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.join_group import JoinGroupRequest
from semel.wire.messages.list_offsets import ListOffsetsRequest
from semel.wire.messages.metadata import MetadataRequest
from semel.wire.messages.produce import ProduceRequest
from semel.wire.schema import Message

PAUSE_SECONDS = 0.005
AFTER_SECONDS = 1.0
Attack = Callable[[str], None]


# The victim


def victim(bootstrap: str) -> None:
    """Produces until its input ends, then prints the latency of each in milliseconds."""
    latencies = []
    done = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
    with RawClient(bootstrap, timeout_s=120) as client:
        while not done.is_set():
            began = time.perf_counter()
            client.ask(producing("victim", b"x" * 100), 9)
            took = time.perf_counter() - began
            latencies.append(took * 1000)
            time.sleep(max(0.0, PAUSE_SECONDS - took))
    print(json.dumps(latencies))


@dataclass
class Felt:
    p50: float
    p99: float
    longest: float
    before_mb: float
    peak_mb: float
    after_mb: float


@contextmanager
def suffering(side: Side) -> Iterator[list[Felt]]:
    """Somebody produces while the body attacks; what was felt is in the list afterwards."""
    command = [sys.executable, "-m", "benchmarks.attacks", side.bootstrap]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    before = peak = side.memory_mb()
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.02):
            peak = max(peak, side.memory_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    felt: list[Felt] = []
    try:
        yield felt
        time.sleep(AFTER_SECONDS)
    finally:
        over.set()
        watcher.join()
        printed, _ = process.communicate()
    latencies = sorted(json.loads(printed))
    at = [latencies[min(len(latencies) - 1, int(len(latencies) * p))] for p in (0.5, 0.99)]
    felt.append(Felt(*at, latencies[-1], before, peak, side.memory_mb()))


# The attacks


def connected(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=60)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain


def frame(request: Message, version: int) -> bytes:
    return bytes(encode_request(RequestHeader(request.API_KEY, version, 1, "attacker"), request))


def producing(topic: str, value: bytes, records: bytes | None = None) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(b"k", value, int(time.time() * 1000))
    data = ProduceRequest.PartitionProduceData(index=0, records=records or bytes(builder.build()))
    part = ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[part])


def metadata(*names: str, create: bool = False) -> MetadataRequest:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create)


def flood(bootstrap: str, payload: bytes, seconds: float = 20) -> None:
    """Send it, and take whatever comes back until the other side is silent or gone."""
    with connected(bootstrap) as plain:
        plain.settimeout(2)
        deadline = time.monotonic() + seconds
        sender = threading.Thread(target=_send, args=(plain, payload))
        sender.start()
        try:
            while time.monotonic() < deadline and plain.recv(1 << 18):
                pass
        except OSError:
            pass
    sender.join()


def _send(plain: socket.socket, payload: bytes) -> None:
    try:
        plain.sendall(payload)
    except OSError:
        return  # closed in the middle: that is an answer, too


def nothing(bootstrap: str) -> None:
    time.sleep(2)


def pipelined_metadata(bootstrap: str) -> None:
    everything = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    flood(bootstrap, frame(everything, 9) * 1_500)


def bomb(records: int) -> bytes:
    builder = BatchBuilder(compression=Compression.ZSTD)
    for _ in range(records):
        builder.append(b"k", b"", 1_700_000_000_000)
    return bytes(builder.build())


def bombs(topic: str) -> Attack:
    def attack(bootstrap: str) -> None:
        with RawClient(bootstrap) as client:
            for _ in range(3):
                client.ask(producing(topic, b"", bomb_bytes()), 9)

    return attack


def bomb_bytes() -> bytes:
    if not _BOMB:
        _BOMB.append(bomb(900_000))
    return _BOMB[0]


_BOMB: list[bytes] = []


def offsets_by_time(bootstrap: str) -> None:
    part = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=1_700_000_000_001)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="bombs", partitions=[part])
    with RawClient(bootstrap) as client:
        for _ in range(5):
            client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 5)


def abandoned_fetches(bootstrap: str) -> None:
    part = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = FetchRequest.FetchTopic(topic="empty", partitions=[part])
    request = FetchRequest(
        max_wait_ms=2**31 - 1, min_bytes=1, max_bytes=1, session_epoch=-1, topics=[topic]
    )
    payload = frame(request, 11)
    for _ in range(100):
        with connected(bootstrap) as plain:
            _send(plain, payload * 100)


def new_topics(bootstrap: str) -> None:
    names = [f"new.{time.time_ns()}.{number}" for number in range(3_000)]
    flood(bootstrap, frame(metadata(*names, create=True), 9), seconds=30)


def producer_id_blocks(bootstrap: str) -> None:
    body = struct.pack(">iq", 1, -1) + b"\0"
    head = struct.pack(">hhih", 67, 0, 1, 1) + b"a\0"
    flood(bootstrap, (struct.pack(">i", len(head + body)) + head + body) * 3_000)


def many_elements(bootstrap: str) -> None:
    keys = FindCoordinatorRequest(key_type=0, coordinator_keys=[""] * 500_000)
    flood(bootstrap, frame(keys, 4))
    whole = frame(FindCoordinatorRequest(key_type=0, coordinator_keys=[""] * 8_000_000), 4)
    cut = whole[4:-3]
    flood(bootstrap, struct.pack(">i", len(cut)) + cut)


def sessions_left_behind(bootstrap: str) -> None:
    part = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = [
        FetchRequest.FetchTopic(topic=f"nothing-{number:040}", partitions=[part])
        for number in range(1_000)
    ]
    request = FetchRequest(max_wait_ms=0, session_epoch=0, max_bytes=1, topics=topics)
    payload = frame(request, 11)
    for _ in range(20):
        flood(bootstrap, payload * 50, seconds=3)


def members_left_behind(bootstrap: str) -> None:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(900_000))
    with ExitStack() as open_ones:
        for number in range(300):
            request = JoinGroupRequest(
                group_id=f"left-{number}",
                session_timeout_ms=300_000,
                rebalance_timeout_ms=300_000,
                protocol_type="consumer",
                protocols=[protocol],
            )
            plain = open_ones.enter_context(connected(bootstrap))
            _send(plain, frame(request, 3))


def halves_of_requests(bootstrap: str) -> None:
    with ExitStack() as open_ones:
        for _ in range(60):
            plain = open_ones.enter_context(connected(bootstrap))
            plain.settimeout(0.2)
            _send(plain, struct.pack(">i", 90 << 20) + bytes(8 << 20))
        time.sleep(2)


ATTACKS: dict[str, Attack] = {
    "nobody": nothing,
    "1,500 Metadata of 500 topics at once": pipelined_metadata,
    "3 zstd batches of 900,000 records, compacted topic": bombs("compacted"),
    "the same into an uncompressed topic": bombs("uncompressed"),
    "the same into a plain topic": bombs("bombs"),
    "ListOffsets by time over what was stored": offsets_by_time,
    "10,000 fetches that wait for ever, then gone": abandoned_fetches,
    "one Metadata with 3,000 new names": new_topics,
    "3,000 AllocateProducerIds": producer_id_blocks,
    "FindCoordinator of 500,000 keys, and 8 MB cut off": many_elements,
    "1,000 fetch sessions of 1,000 partitions": sessions_left_behind,
    "300 JoinGroups of 900 KB": members_left_behind,
    "60 requests of 90 MB, 8 MB of each sent": halves_of_requests,
}


def prepare(side: Side) -> None:
    topic, config = CreateTopicsRequest.CreatableTopic, CreateTopicsRequest.CreatableTopicConfig
    configs = {
        "compacted": {"cleanup.policy": "compact"},
        "uncompressed": {"compression.type": "uncompressed"},
    }
    names = ["victim", "empty", "bombs", *configs, *(f"topic-{n}" for n in range(500))]
    topics = [
        topic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[config(name=k, value=v) for k, v in configs.get(name, {}).items()],
        )
        for name in names
    ]
    with RawClient(side.bootstrap, timeout_s=120) as client:
        client.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
        while client.ask(metadata("victim"), 9).topics[0].error_code:
            time.sleep(0.2)
        for _ in range(300):
            client.ask(producing("victim", b"x" * 100), 9)


def run() -> None:
    table = Table(title="What a victim feels, in ms, and the broker's memory in MB")
    for heading in ("attack", "broker", "p50", "p99", "max", "before", "peak", "after"):
        table.add_column(heading, justify="left" if heading in ("attack", "broker") else "right")
    with both_brokers() as sides:
        for side in sides:
            prepare(side)
        for name, attack in ATTACKS.items():
            for side in sides:
                row = measured(side, name, attack)
                table.add_row(*row)
                print(*row, file=sys.stderr)
    Console(width=110).print(table)


def measured(side: Side, name: str, attack: Attack) -> list[str]:
    try:
        with suffering(side) as felt:
            time.sleep(0.5)
            attack(side.bootstrap)
    except (OSError, ProtocolError) as problem:
        return [name, side.name, f"{type(problem).__name__}: {problem}"]
    one = felt[0]
    times = [f"{value:.1f}" for value in (one.p50, one.p99, one.longest)]
    sizes = [f"{value:.0f}" for value in (one.before_mb, one.peak_mb, one.after_mb)]
    return [name, side.name, *times, *sizes]


if __name__ == "__main__":
    victim(sys.argv[1])
