"""`semel produce`: lines of standard input as records, in one transaction if wished."""

import argparse
import asyncio
import sys

from semel.cli.connecting import add_connection, client_settings, run_client
from semel.client import Delivery, Producer, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("topic")
    parser.add_argument("-k", "--key-separator", metavar="TEXT",
                        help="what stands before it in a line is the key")  # fmt: skip
    parser.add_argument("-H", "--header", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("-p", "--partition", type=int)
    parser.add_argument("-t", "--transactional-id",
                        help="all lines in one transaction: all visible, or none")  # fmt: skip
    parser.add_argument("-z", "--compression", default="none",
                        choices=["none", "gzip", "snappy", "lz4", "zstd"])  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    async def work() -> None:
        settings = {"max.block.ms": 10_000, "compression.type": arguments.compression}
        settings |= client_settings(arguments)
        if arguments.transactional_id:
            settings["transactional.id"] = arguments.transactional_id
        async with Producer(settings=settings) as producer:
            await _check_partition(producer, arguments)
            if arguments.transactional_id:
                async with producer.transaction():
                    count = await _send_lines(producer, arguments)
            else:
                count = await _send_lines(producer, arguments)
        print(f"{count} records sent to {arguments.topic}", file=sys.stderr)

    return run_client(work)


async def _check_partition(producer: Producer, arguments: argparse.Namespace) -> None:
    if arguments.partition is None:
        return
    known = await producer.partitions_for(arguments.topic)
    if arguments.partition not in known:
        raise UsageError(f"{arguments.topic} has {len(known)} partitions, no {arguments.partition}")


async def _send_lines(producer: Producer, arguments: argparse.Namespace) -> int:
    headers = [_header(word) for word in arguments.header]
    separator = (arguments.key_separator or "").encode()
    deliveries: list[Delivery] = []
    count = 0
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        value = line.rstrip(b"\n")
        key = None
        if separator and separator in value:
            key, value = value.split(separator, 1)
        delivery = await producer.send(
            arguments.topic, value, key, partition=arguments.partition, headers=headers
        )
        count += 1
        deliveries.append(delivery)
        if len(deliveries) >= 10_000:
            await _check(deliveries)
    await producer.flush()
    await _check(deliveries)
    return count


async def _check(deliveries: list[Delivery]) -> None:
    """Raises the first failure."""
    for delivery in deliveries:
        await delivery
    deliveries.clear()


def _header(word: str) -> tuple[str, bytes]:
    name, equals, value = word.partition("=")
    if not equals:
        raise SystemExit(f"semel: --header {word}: should be NAME=VALUE")
    return name, value.encode()
