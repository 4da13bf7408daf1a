"""`semel produce`: lines of standard input as records, in one transaction if wished."""

import argparse
import sys

from semel.cli.commands import CONNECTION, CommandTable, Option, pair, whole
from semel.cli.connecting import PATIENCE_MS, client_settings, run_client
from semel.cli.exits import CommandError
from semel.cli.lines import input_lines
from semel.client import Delivery, Producer

# Failures are looked for after so many records: a mistake ends a long input soon.
_CHECKED_TOGETHER = 10_000


def run(arguments: argparse.Namespace) -> int:
    async def work() -> None:
        async with Producer(settings=_settings(arguments)) as producer:
            await _check_partition(producer, arguments)
            if sys.stdin is not None and sys.stdin.isatty():
                print("Each line is a record. Ctrl-D ends the input.", file=sys.stderr)
            if arguments.transactional_id:
                async with producer.transaction():
                    count = await _send_lines(producer, arguments)
            else:
                count = await _send_lines(producer, arguments)
        records = "record" if count == 1 else "records"
        print(f"{count} {records} sent to {arguments.topic}", file=sys.stderr)

    return run_client(work)


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    settings = client_settings(
        arguments,
        compression_type=arguments.compression,
        # A batch gives up, and says why, before the calls that wait for it do.
        delivery_timeout_ms=PATIENCE_MS,
        max_block_ms=PATIENCE_MS * 3 // 2,
    )
    if arguments.transactional_id:
        settings["transactional.id"] = arguments.transactional_id
    return settings


async def _check_partition(producer: Producer, arguments: argparse.Namespace) -> None:
    if arguments.partition is None:
        return
    known = await producer.partitions_for(arguments.topic)
    if arguments.partition not in known:
        raise CommandError(
            f"{arguments.topic} has {len(known)} partitions, no {arguments.partition}"
        )


async def _send_lines(producer: Producer, arguments: argparse.Namespace) -> int:
    headers = [(name, value.encode()) for name, value in arguments.header or ()]
    separator = (arguments.key_separator or "").encode()
    deliveries: list[Delivery] = []
    count = 0
    async for lines in input_lines():
        for value in lines:
            key = None
            if separator and separator in value:
                key, value = value.split(separator, 1)
            delivery = await producer.send(
                arguments.topic, value, key, partition=arguments.partition, headers=headers
            )
            deliveries.append(delivery)
        count += len(lines)
        if len(deliveries) >= _CHECKED_TOGETHER:
            await _check(deliveries)
    await producer.flush()
    await _check(deliveries)
    return count


async def _check(deliveries: list[Delivery]) -> None:
    """Raises the first failure."""
    for delivery in deliveries:
        await delivery
    deliveries.clear()


COMMAND = CommandTable(
    run=run,
    options=(
        Option("topic", "the topic to send to"),
        Option("-k --key-separator", "what stands before this text in a line is the key, what "
               "stands behind it the value", value="TEXT"),
        Option("-H --header", "a header of every record; may be repeated", value="NAME=VALUE",
               parse=pair, repeated=True),
        Option("-p --partition", "send all to this partition", value="NUMBER", parse=whole(0)),
        Option("-t --transactional-id", "send all lines in one transaction under this id: all "
               "are visible, or none", value="ID"),
        Option("-z --compression", "compress batches", value="KIND", default="none",
               choices=("none", "gzip", "snappy", "lz4", "zstd")),
        *CONNECTION,
    ),
    examples={
        "echo hello | semel produce greetings": "one record",
        "semel produce orders -k : < orders.txt": "lines as key:value",
        "semel produce orders -t load-1 < orders.txt": "all of the file, or nothing",
    },
)  # fmt: skip
