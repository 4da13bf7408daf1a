"""Where in a partition: the words that `consume --offset` and `groups reset --to` take."""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

WORDS = (
    "earliest (or beginning), latest (or end), an offset, -N for the last N of each partition, or "
    "@TIME for the first record at or after a time: milliseconds since 1970, 2026-01-31T12:00, or "
    "-90s, -15m, -2h, -7d for so long ago"
)
_AGO = re.compile(r"-(\d+)(s|m|h|d)")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Kind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    FROM_END = "from the end"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class LogPlace:
    kind: Kind
    number: int = 0

    @property
    def time_ms(self) -> int | None:
        return self.number if self.kind is Kind.TIME else None

    def within(self, begin: int, end: int, at_time: int | None = None) -> int:
        """The offset in a partition, within what is there. `at_time` is the first offset at or
        after the time, None where there is none yet: then the end, where such records will come."""
        wanted = {
            Kind.EARLIEST: begin,
            Kind.LATEST: end,
            Kind.OFFSET: self.number,
            Kind.FROM_END: end - self.number,
            Kind.TIME: end if at_time is None else at_time,
        }[self.kind]
        return min(max(wanted, begin), end)


def parse_place(text: str) -> LogPlace:
    """A place by its word; a mistake is told by argparse."""
    if text in ("earliest", "beginning"):
        return LogPlace(Kind.EARLIEST)
    if text in ("latest", "end"):
        return LogPlace(Kind.LATEST)
    if text.startswith("@"):
        return LogPlace(Kind.TIME, parse_time(text[1:]))
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no place: give earliest, latest, an offset, -N for the last N, or @TIME"
        ) from None
    return LogPlace(Kind.FROM_END, -number) if number < 0 else LogPlace(Kind.OFFSET, number)


def parse_time(text: str) -> int:
    """Milliseconds since 1970. A time without a zone is one of this machine's."""
    if ago := _AGO.fullmatch(text):
        return max(0, int(time.time() * 1000) - int(ago[1]) * _UNIT_MS[ago[2]])
    if text.isascii() and text.isdigit() and len(text) > 8:  # 20260131 is a date
        return int(text)
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: give milliseconds since 1970, 2026-01-31T12:00 (with +02:00 or "
            "Z behind it for a zone), or -90s, -15m, -2h, -7d for so long ago"
        ) from None
