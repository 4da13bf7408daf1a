"""Bytecodes and calls per one-record transaction in the broker's loop, counted exactly.

    python -m benchmarks bytecodes                   one line per request
    python -m benchmarks.bytecodes --functions       and one per function, for a diff

Beside busy clients a request costs what is executed (decision 4), and that can be counted without
noise on any machine: run it before and after a change. The loop's thread is traced opcode by opcode
while a raw client sends transactions over loopback. A request's share is all that is executed from
its `Connection.readable` to the next one's, in files of ours and in functions compiled by us, but
not in the standard library. Now and then a timer or a segment's index entry comes on top: the most
frequent number counts. Numbers differ between versions of Python: compare those of one.
"""

from __future__ import annotations

import argparse
import platform
import sys
import sysconfig
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from statistics import mode
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tests.support.conversations.raw_client import RawClient

from benchmarks.raw_client import RawTransactions
from semel.broker.server import Broker
from semel.net.connection import Connection
from semel.wire.messages.create_topics import CreateTopicsRequest

TOPIC = "bench-bytecodes"
WARM_UP, TRANSACTIONS = 20, 60
METRICS_ON: dict[str, object] = {"metrics.port": 0}
REQUESTS = {
    "version 1": ("AddPartitionsToTxn", "Produce", "EndTxn"),
    "version 2": ("Produce", "EndTxn"),
}
NOT_OURS = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")})
BEGINNING = Connection.readable.__code__


@cache
def is_ours(code: CodeType) -> bool:
    """Readers and writers of messages are compiled, and have names instead of files."""
    return not code.co_filename.startswith((*NOT_OURS, "<frozen")) and code.co_filename != __file__


class Share:
    """What was executed for one request."""

    def __init__(self) -> None:
        self.bytecodes: Counter[CodeType] = Counter()
        self.calls: Counter[CodeType] = Counter()

    @property
    def size(self) -> tuple[int, int]:
        return self.bytecodes.total(), self.calls.total()


class Tracer:
    """The shares of all requests, in the order of their arrival."""

    def __init__(self) -> None:
        self.shares = [Share()]

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not is_ours(code):
            return None
        if code is BEGINNING:
            self.shares.append(Share())
        self.shares[-1].calls[code] += 1
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.opcode

    def opcode(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.shares[-1].bytecodes[frame.f_code] += 1
        return self.opcode


class Counted(NamedTuple):
    request: str
    share: Share


def run() -> None:
    show(with_functions=False)
    print("The same with metrics on")
    show(with_functions=False, settings=METRICS_ON)


def show(with_functions: bool, settings: dict[str, object] | None = None) -> None:
    print(f"Bytecodes (calls) of a one-record transaction, Python {platform.python_version()}")
    for version in REQUESTS:
        counted = list(count(version, settings or {}))
        sizes = [share.size for _, share in counted]
        bytecodes, calls = (sum(column) for column in zip(*sizes, strict=True))
        parts = (
            f"{name} {size[0]} ({size[1]})" for (name, _), size in zip(counted, sizes, strict=True)
        )
        print(f"{version}: {bytecodes} ({calls})  = {' + '.join(parts)}")
        if with_functions:
            for request, share in counted:
                show_functions(request, share)


def show_functions(request: str, share: Share) -> None:
    print(f"  {request}")
    for code, bytecodes in sorted(share.bytecodes.items(), key=lambda item: -item[1]):
        file = code.co_filename.rpartition("/src/")[2]
        print(f"    {bytecodes:6} {share.calls[code]:4}  {file} {code.co_qualname}")


def count(version: str, settings: dict[str, object]) -> Iterator[Counted]:
    """The usual share of each request of a transaction."""
    requests = REQUESTS[version]
    shares = traced(version == "version 2", settings)
    for index, name in enumerate(requests):
        same = shares[index :: len(requests)]
        usual = mode(share.size for share in same)
        yield Counted(name, next(share for share in same if share.size == usual))


def traced(new: bool, settings: dict[str, object]) -> list[Share]:
    with tempfile.TemporaryDirectory() as data, Broker(data=data, settings=settings) as broker:
        make_topic(broker.bootstrap_servers)
        client = RawTransactions(broker.bootstrap_servers, TOPIC, "bytecodes", new)
        client.run(WARM_UP)
        tracer = Tracer()
        in_loop(broker, tracer.call)
        client.run(TRANSACTIONS)
        in_loop(broker, None)
        client.client.close()
    return tracer.shares[1:]


def make_topic(bootstrap: str) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    with RawClient(bootstrap) as client:
        [made] = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 5).topics
    assert made.error_code == 0, made.error_message


def in_loop(broker: Broker, trace: Any) -> None:
    """Have the loop's thread traced, or no longer."""
    done = threading.Event()
    broker.loop.call_soon_threadsafe(lambda: (sys.settrace(trace), done.set()))
    done.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", action="store_true", help="one line per function as well")
    show(parser.parse_args().functions)


if __name__ == "__main__":
    main()
