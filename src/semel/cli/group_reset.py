"""`semel groups reset`: moves the committed offsets of a group to a place, or by a number."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from semel.cli.commands import Option
from semel.cli.exits import CommandError, usage
from semel.cli.places import WORDS, LogPlace, parse_place
from semel.cli.printing import show
from semel.client import Admin, TopicPartition

_EARLIEST, _LATEST = -2, -1  # what ListOffsets calls them


class Chosen(NamedTuple):
    """A topic, and some of its partitions; none means all."""

    topic: str
    partitions: tuple[int, ...]


def parse_chosen(text: str) -> Chosen:
    """`orders`, or `orders:0,3`."""
    topic, colon, numbers = text.partition(":")
    words = numbers.split(",") if colon else []
    if not topic or not all(word.isascii() and word.isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} should be TOPIC or TOPIC:0,3")
    return Chosen(topic, tuple(map(int, words)))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number, as 100 or -100") from None


OPTIONS = (
    Option("--to", WORDS, value="PLACE", parse=parse_place),
    Option("--by", "so many records on, or back (-100), from where the group stands",
           value="NUMBER", parse=_number),
    Option("--topic", "this topic, or some partitions of it (orders:0,3); may be repeated. "
           "Without it, everything that the group has committed offsets for",
           value="TOPIC", parse=parse_chosen, repeated=True),
    Option("--dry-run", "show what would change, and change nothing"),
)  # fmt: skip


async def reset(admin: Admin, arguments: argparse.Namespace) -> None:
    if (arguments.to is None) == (arguments.by is None):
        raise usage("groups reset: give --to PLACE or --by NUMBER, one of the two")
    await _must_be_empty(admin, arguments.group)
    committed = {
        place: found.offset for place, found in (await admin.group_offsets(arguments.group)).items()
    }
    places = await _chosen(admin, arguments.topic) if arguments.topic else sorted(committed)
    if not places:
        raise CommandError(
            f"the group {arguments.group!r} has committed no offsets: say with --topic for which "
            "topic it shall have some"
        )
    if arguments.by is not None and (missing := [p for p in places if p not in committed]):
        raise CommandError(
            f"the group {arguments.group!r} has no committed offset of {missing[0]} to count "
            "from: use --to"
        )
    wanted = await _wanted(admin, places, committed, arguments)
    if not arguments.dry_run:
        await admin.alter_group_offsets(arguments.group, wanted)
    rows = [(place.topic, place.partition, committed.get(place), wanted[place]) for place in places]
    title = "nothing is changed: a dry run" if arguments.dry_run else ""
    show(("topic", "partition", "from", "to"), rows, as_json=arguments.json, title=title)


async def _must_be_empty(admin: Admin, group: str) -> None:
    """The coordinator refuses as well, but names neither the reason nor the members."""
    if group not in {known.group_id for known in await admin.list_groups()}:
        return
    members = (await admin.describe_group(group)).members
    if members:
        many = f"{len(members)} members" if len(members) > 1 else "a member"
        who = ", ".join(f"{member.client_id} at {member.host}" for member in members[:3])
        raise CommandError(
            f"the group {group!r} has {many} ({who}), which would go on from where they are: stop "
            "them first, and wait until the group is empty"
        )


async def _chosen(admin: Admin, topics: Iterable[Chosen]) -> list[TopicPartition]:
    topics = list(topics)
    known = await admin.describe_topics([chosen.topic for chosen in topics])
    places = set()
    for topic, partitions in topics:
        have = known[topic].partitions
        if missing := sorted(set(partitions) - set(have)):
            raise CommandError(f"{topic} has {len(have)} partitions, no {missing[0]}")
        places |= {TopicPartition(topic, index) for index in partitions or have}
    return sorted(places)


async def _wanted(
    admin: Admin,
    places: list[TopicPartition],
    committed: Mapping[TopicPartition, int],
    arguments: argparse.Namespace,
) -> dict[TopicPartition, int]:
    begins = await admin.list_offsets(dict.fromkeys(places, _EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(places, _LATEST))
    if arguments.by is not None:
        moved = {place: committed[place] + arguments.by for place in places}
        return {p: min(max(moved[p], begins[p].offset), ends[p].offset) for p in places}
    to: LogPlace = arguments.to
    times: dict[TopicPartition, int] = {}
    if to.time_ms is not None:
        found = await admin.list_offsets(dict.fromkeys(places, to.time_ms))
        times = {place: at.offset for place, at in found.items() if at.offset >= 0}
    return {p: to.within(begins[p].offset, ends[p].offset, times.get(p)) for p in places}
