"""`semel consume`: records of topics as lines, as JSON, or by a format of your own."""

import argparse
import base64
import json
import sys
import time
from typing import Any

from semel.cli.connecting import add_connection, add_json, client_settings, run_client
from semel.cli.printing import moment
from semel.client import Consumer, ConsumerRecord, TopicPartition, UsageError

_FORMAT_HELP = (
    "with %%t topic, %%p partition, %%o offset, %%T time, %%k key, %%v value, %%h headers"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser)
    add_json(parser)
    parser.add_argument("topic")
    parser.add_argument(
        "-p", "--partition", type=int, action="append", help="only this; repeatable"
    )
    parser.add_argument("-g", "--group", help="as a member of this group, committing offsets")
    parser.add_argument("-o", "--offset", default="beginning",
                        help="beginning, end, a number, or -N: the last N of each")  # fmt: skip
    parser.add_argument("-n", "--count", type=int, help="stop after so many records")
    parser.add_argument("-e", "--exit", action="store_true", help="stop at the end of the topic")
    parser.add_argument("--uncommitted", action="store_true",
                        help="show records of open and aborted transactions too")  # fmt: skip
    parser.add_argument("-f", "--format", default="%v", help=_FORMAT_HELP)
    parser.add_argument("--progress", action="store_true", help="counts on standard error")


def run(arguments: argparse.Namespace) -> int:
    async def work() -> None:
        settings = client_settings(arguments) | {
            "isolation.level": "read_uncommitted" if arguments.uncommitted else "read_committed",
            "auto.offset.reset": "latest" if arguments.offset == "end" else "earliest",
            "allow.auto.create.topics": False,
        }
        if arguments.group:
            settings |= {"group.id": arguments.group, "enable.auto.commit": True}
        async with Consumer(settings=settings) as consumer:
            if arguments.group:
                consumer.subscribe([arguments.topic])
                ends: dict[TopicPartition, int] = {}
            else:
                ends = await _assign(consumer, arguments)
            await _print_all(consumer, arguments, ends)

    return run_client(work)


async def _assign(consumer: Consumer, arguments: argparse.Namespace) -> dict[TopicPartition, int]:
    known = await consumer.partitions_for(arguments.topic)
    indexes = arguments.partition or known
    if missing := sorted(set(indexes) - set(known)):
        raise UsageError(f"{arguments.topic} has {len(known)} partitions, no {missing[0]}")
    places = [TopicPartition(arguments.topic, index) for index in indexes]
    consumer.assign(places)
    ends = await consumer.end_offsets(places)
    begins = await consumer.beginning_offsets(places)
    for place in places:
        start = _start(arguments.offset, begins[place], ends[place])
        consumer.seek(place, min(max(start, begins[place]), ends[place]))
    return ends if arguments.exit else {}


def _start(offset: str, begin: int, end: int) -> int:
    if offset in ("beginning", "end"):
        return begin if offset == "beginning" else end
    try:
        number = int(offset)
    except ValueError:
        raise SystemExit(f"semel: --offset {offset}: beginning, end or a number") from None
    return end + number if number < 0 else number


async def _print_all(
    consumer: Consumer, arguments: argparse.Namespace, ends: dict[TopicPartition, int]
) -> None:
    count, started = 0, time.monotonic()
    while arguments.count is None or count < arguments.count:
        if ends and all([await consumer.position(place) >= end for place, end in ends.items()]):
            break
        most = None if arguments.count is None else arguments.count - count
        records = await consumer.poll(200, most)
        for record in records:
            _print(record, arguments)
        count += len(records)
        if records:
            sys.stdout.flush()
        if arguments.progress and records:
            rate = count / max(time.monotonic() - started, 1e-9)
            print(f"\r{count} records, {rate:,.0f}/s ", end="", file=sys.stderr, flush=True)
    if arguments.progress:
        print(file=sys.stderr)


def _print(record: ConsumerRecord, arguments: argparse.Namespace) -> None:
    if arguments.json:
        facts = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _readable(record.key),
            "value": _readable(record.value),
            "headers": {name: _readable(value) for name, value in record.headers},
        }
        print(json.dumps(facts))
        return
    if arguments.format == "%v":
        sys.stdout.buffer.write((record.value or b"") + b"\n")
        return
    sys.stdout.buffer.write(_formatted(arguments.format, record).encode() + b"\n")


def _formatted(form: str, record: ConsumerRecord) -> str:
    words = {
        "t": record.topic,
        "p": record.partition,
        "o": record.offset,
        "T": moment(record.timestamp),
        "k": _readable(record.key),
        "v": _readable(record.value),
        "h": ",".join(f"{name}={_readable(value)}" for name, value in record.headers),
        "%": "%",
    }
    first, *rest = form.split("%")
    out = [first]
    position = 0
    while position < len(rest):
        part = rest[position]
        if not part:  # %% is a percent sign
            position += 1
            out.append("%" + (rest[position] if position < len(rest) else ""))
        else:
            word = words.get(part[0])
            out.append(
                f"%{part}" if part[0] not in words else f"{'' if word is None else word}{part[1:]}"
            )
        position += 1
    return "".join(out)


def _readable(data: bytes | None) -> Any:
    """Text where it is text; else base64, marked as such."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}"
