"""`semel consume`: records of a topic as lines, as JSON, or by a format of your own."""

import argparse
import sys
import time
from collections.abc import Callable
from difflib import get_close_matches

from semel.cli.commands import CONNECTION, CommandTable, Option, whole
from semel.cli.connecting import client_settings, run_client
from semel.cli.exits import CommandError, Exit, usage
from semel.cli.places import WORDS, LogPlace, parse_place
from semel.cli.record_format import HELP, Format, as_json
from semel.client import Consumer, ConsumerRecord, TopicPartition

_POLL_MS = 200
_BEGINNING = parse_place("earliest")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)

    async def work() -> None:
        async with Consumer(settings=_settings(arguments)) as consumer:
            reading: PartitionReader = (
                GroupReader(consumer) if arguments.group_id else PartitionReader(consumer)
            )
            await _check_topic(consumer, arguments.topic)
            await reading.start(arguments)
            await _print_all(reading, arguments)

    try:
        return run_client(work)
    except KeyboardInterrupt:
        # Without an end of its own it is meant to be stopped.
        if arguments.exit or arguments.count is not None:
            raise
        return Exit.DONE


def _check(arguments: argparse.Namespace) -> None:
    if arguments.group_id and arguments.partition:
        raise usage(
            "-p and -g exclude each other: a group divides the partitions among its members. "
            "Leave one of them out."
        )
    if arguments.group_id and arguments.offset is not None:
        raise usage(
            "-o and -g exclude each other: a group goes on where it stands. Leave out -g to read "
            f"from any place, or move the group with `semel groups reset {arguments.group_id}`."
        )


async def _check_topic(consumer: Consumer, name: str) -> None:
    """A consumer waits for a topic that may be on its way. Who types a name has mistyped it."""
    if name.startswith("__"):  # the brokers' own are not listed
        return
    known = await consumer.topics()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "`semel topics list` shows those there are"
        raise CommandError(f"there is no topic {name!r}; {hint}")


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    settings = client_settings(
        arguments,
        isolation_level="read_uncommitted" if arguments.uncommitted else "read_committed",
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        enable_auto_commit=bool(arguments.group_id),
    )
    return settings | ({"group.id": arguments.group_id} if arguments.group_id else {})


class PartitionReader:
    """Chosen partitions, from a place on."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        #: Where the partitions ended when reading began.
        self.ends: dict[TopicPartition, int] = {}

    async def start(self, arguments: argparse.Namespace) -> None:
        topic, consumer = arguments.topic, self.consumer
        known = await consumer.partitions_for(topic)
        indexes = arguments.partition or known
        if missing := sorted(set(indexes) - set(known)):
            raise CommandError(f"{topic} has {len(known)} partitions, no {missing[0]}")
        places = [TopicPartition(topic, index) for index in indexes]
        consumer.assign(places)
        self.ends = await consumer.end_offsets(places)
        begins = await consumer.beginning_offsets(places)
        where: LogPlace = arguments.offset or _BEGINNING
        times = {}
        if where.time_ms is not None:
            times = await consumer.offsets_for_times(dict.fromkeys(places, where.time_ms))
        for place in places:
            at_time = times[place].offset if place in times else None
            consumer.seek(place, where.within(begins[place], self.ends[place], at_time))

    async def is_at_end(self) -> bool:
        """Whether everything was read that was there when reading began."""
        for place, end in list(self.ends.items()):
            if await self.consumer.position(place) < end:
                return False
        return True


class GroupReader(PartitionReader):
    """As a member of a group: what it is given, from where the group stands."""

    async def start(self, arguments: argparse.Namespace) -> None:
        topic, consumer = arguments.topic, self.consumer
        indexes = await consumer.partitions_for(topic)
        self._all_ends = await consumer.end_offsets(
            [TopicPartition(topic, index) for index in indexes]
        )
        consumer.subscribe([topic])

    async def is_at_end(self) -> bool:
        """Of its own partitions. Without any, it waits until the group has nothing left to do:
        some may be on their way from members that leave."""
        assigned = self.consumer.assignment()
        self.ends = {place: self._all_ends.get(place, 0) for place in assigned}
        if assigned:
            return await super().is_at_end()
        committed = await self.consumer.committed(self._all_ends)
        begins = await self.consumer.beginning_offsets(self._all_ends)
        return all(
            (committed[place].offset if place in committed else begins[place]) >= end
            for place, end in self._all_ends.items()
        )


async def _print_all(reading: PartitionReader, arguments: argparse.Namespace) -> None:
    write: Callable[[ConsumerRecord], bytes] = as_json if arguments.json else arguments.format
    progress = RecordCounter(arguments.progress)
    while arguments.count is None or progress.count < arguments.count:
        if arguments.exit and await reading.is_at_end():
            break
        most = None if arguments.count is None else arguments.count - progress.count
        records = await reading.consumer.poll(_POLL_MS, most)
        if records:
            _write(reading.consumer, records, write)
            progress.add(len(records))
    progress.end()


def _write(
    consumer: Consumer, records: list[ConsumerRecord], write: Callable[[ConsumerRecord], bytes]
) -> None:
    try:
        sys.stdout.buffer.write(b"".join(map(write, records)))
        sys.stdout.buffer.flush()
    except OSError:
        # What nobody took is not committed: the group's next member shall read it.
        for record in reversed(records):
            consumer.seek(TopicPartition(record.topic, record.partition), record.offset)
        raise


class RecordCounter:
    """How many records came how fast, on standard error, if wished."""

    def __init__(self, shown: bool) -> None:
        self.count = 0
        self._shown = shown
        self._began = time.monotonic()

    def add(self, records: int) -> None:
        self.count += records
        if self._shown:
            rate = self.count / max(time.monotonic() - self._began, 1e-9)
            print(f"\r{self.count} records, {rate:,.0f}/s ", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print(file=sys.stderr)


COMMAND = CommandTable(
    run=run,
    options=(
        Option("topic", "the topic to read"),
        Option("-o --offset", f"where to begin: {WORDS}. Without it at the beginning",
               value="PLACE", parse=parse_place),
        Option("-p --partition", "read only this partition; may be repeated",
               value="NUMBER", parse=whole(0), repeated=True),
        Option("-g --group-id", "read as a member of this group, from where it stands, and commit "
               "offsets", value="GROUP"),
        Option("-n --count", "stop after so many records", value="NUMBER", parse=whole(1)),
        Option("-e --exit", "stop at the end: when everything was read that was there at the "
               "beginning; with -g, in the partitions that the group gave us"),
        Option("--uncommitted", "show records of open and aborted transactions too"),
        Option("-f --format", HELP, value="FORMAT", parse=Format, default=Format("%v")),
        Option("--json", "print records as JSON, one object a line; bytes that are not text are "
               'an object, {"base64": "…"}'),
        Option("--progress", "show on standard error how many records came"),
        *CONNECTION,
    ),
    examples={
        "semel consume orders": "all records, then wait for more; Ctrl-C ends it",
        "semel consume orders -e -o -10": "the last 10 of each partition",
        "semel consume orders -e -o @-1h": "those of the last hour",
        r"semel consume orders -f '%p:%o\t%k\t%v'": "with partition, offset and key",
        "semel consume orders -e --json": "for a program",
    },
)  # fmt: skip
