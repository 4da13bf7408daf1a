"""What the store costs: µs per append and read, start with thousands of partitions, group commit.

python benchmarks/store.py [--partitions 5000] [--directory PATH]
"""

import argparse
import asyncio
import os
import socket
import statistics
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from semel.store.directory import DiskStore
from semel.store.interface import Log, LogConfig
from semel.wire.batches import BatchBuilder, BatchHeader, patch

ROUNDS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=5000)
    parser.add_argument("--directory", help="where to write; a temporary directory by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        root = Path(directory)
        appends(root / "appends")
        reads(root / "reads")
        asyncio.run(commits(root / "commits"))
        starts(root / "starts", arguments.partitions)


def appends(root: Path) -> None:
    store = DiskStore(root)
    for size, count in ((100, 20_000), (16_384, 5_000), (1 << 20, 300)):
        batch = batch_of(size)
        log = store.create(f"append-{size}", 0, uuid4())
        whole = best(lambda log=log, batch=batch, count=count: append_all(log, batch, count))
        bare = best(lambda root=root, batch=batch, count=count: write_all(root, batch, count))
        report(
            f"append {len(batch)} B",
            f"{whole / count * 1e6:8.2f} µs, of it writev {bare / count * 1e6:.2f} µs, "
            f"{len(batch) * count / whole / 1e6:.0f} MB/s",
        )
        store.delete(f"append-{size}", 0)
        store.checkpoint()
    store.close()


def reads(root: Path) -> None:
    store = DiskStore(root)
    log = store.create("read", 0, uuid4())
    append_all(log, batch_of(16_384), 8_000)
    tail = log.next_offset - 1
    log.append([place(batch_of(1000), log.next_offset)])
    cold = list(range(0, log.next_offset, 37))
    repeat = 20_000

    def tailing() -> None:
        for _ in range(repeat):
            log.read(log.next_offset - 1, 1 << 20)

    def random() -> None:
        for offset in cold:
            log.read(offset, 1 << 20, tail)

    def sequential() -> None:
        offset = 0
        while offset < log.next_offset:
            offset = log.read(offset, 1 << 20).end_offset

    report("read at the tail", f"{best(tailing) / repeat * 1e6:8.2f} µs")
    report("read 1 MiB at random", f"{best(random) / len(cold) * 1e6:8.2f} µs")
    mebibytes = log.size >> 20
    report("read 1 MiB in sequence", f"{best(sequential) / mebibytes * 1e6:8.2f} µs")
    report("sendfile 1 MiB", f"{best(lambda: send(log)) / mebibytes * 1e6:8.2f} µs")
    store.close()


def send(log: Log) -> None:
    """The whole log through a socket pair, drained by splice-free receives into one buffer."""
    ours, theirs = socket.socketpair()
    sink = bytearray(1 << 20)
    offset = 0
    while offset < log.next_offset:
        region = log.read(offset, 1 << 16)
        sent = 0
        while sent < len(region):
            sent += os.sendfile(
                ours.fileno(), region.fd, region.position + sent, len(region) - sent
            )
            theirs.recv_into(sink)
        offset = region.end_offset
    ours.close()
    theirs.close()


async def commits(root: Path) -> None:
    store = DiskStore(root, durability="fsync")
    for together in (1, 64):
        log = store.create(f"commit-{together}", 0, uuid4())
        took = []
        for _ in range(100):
            begun = time.perf_counter()
            tickets = [log.append([place(batch_of(100), log.next_offset)]) for _ in range(together)]
            for ticket in tickets:
                await ticket
            took.append(time.perf_counter() - begun)
        report(
            f"fsync, {together} appends together",
            f"{statistics.median(took) * 1e6 / together:8.2f} µs each, "
            f"{statistics.median(took) * 1e3:.2f} ms until durable",
        )
    store.close()


def starts(root: Path, partitions: int) -> None:
    store = DiskStore(root)
    begun = time.perf_counter()
    batch = batch_of(1000)
    for partition in range(partitions):
        log = store.create("many", partition, uuid4(), LogConfig())
        for _ in range(10):
            log.append([place(batch, log.next_offset)])
    report(f"create {partitions} and append 10 each", f"{time.perf_counter() - begun:8.2f} s")
    report("open files meanwhile", f"{len(os.listdir('/proc/self/fd')):8d}")
    stop(store, "clean stop")
    store = start(root, "start after a clean stop")
    stop(store, "stop with nothing written")
    store = start(root, "start again")
    store._lock = None  # what kill -9 leaves behind
    stop(start(root, "start after a kill"), "clean stop")


def start(root: Path, what: str) -> DiskStore:
    begun, cpu = time.perf_counter(), time.process_time()
    store = DiskStore(root)
    for topic, partition in store.list():
        store.open(topic, partition)
    spent = time.process_time() - cpu
    took = time.perf_counter() - begun
    report(what, f"{took:8.2f} s, {spent:.2f} s of CPU, {resident_mb()} MB resident")
    return store


def stop(store: DiskStore, what: str) -> None:
    begun = time.perf_counter()
    store.close()
    report(what, f"{time.perf_counter() - begun:8.2f} s")


def append_all(log: Log, batch: bytearray, count: int) -> float:
    """Seconds spent in `append` alone."""
    header = BatchHeader(batch)
    buffers = [memoryview(batch)]
    total = 0.0
    for _ in range(count):
        patch(header, log.next_offset, 0)
        begun = time.perf_counter()
        log.append(buffers)
        total += time.perf_counter() - begun
    return total


def write_all(root: Path, batch: bytearray, count: int) -> float:
    fd = os.open(root / "bare", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    buffers = [memoryview(batch)]
    total = 0.0
    for _ in range(count):
        begun = time.perf_counter()
        os.writev(fd, buffers)
        total += time.perf_counter() - begun
    os.close(fd)
    return total


def batch_of(size: int) -> bytearray:
    builder = BatchBuilder()
    for _ in range(max(1, size // 1000)):
        builder.append(b"key", b"x" * min(size, 1000), 1_700_000_000_000)
    return builder.build()


def place(batch: bytearray, offset: int) -> bytearray:
    patch(BatchHeader(batch), offset, 0)
    return batch


def best(run) -> float:  # type: ignore[no-untyped-def]
    """The median of several rounds; what a run returns counts as its time if it measures itself."""
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        measured = run()
        took.append(measured or time.perf_counter() - begun)
    return statistics.median(took)


def resident_mb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def report(what: str, result: str) -> None:
    print(f"{what:36s}{result}", flush=True)


if __name__ == "__main__":
    main()
