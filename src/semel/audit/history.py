"""The history of a run: what the writers did and what the readers saw. Pure data.

A *transfer* is a transaction of several records ("legs") in several partitions. Each leg names its
transfer, so that whoever reads it knows what else must be there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum


class Outcome(Enum):
    """How a transfer ended, as far as its writer knows."""

    COMMITTED = "committed"  # the broker said so
    ABORTED = "aborted"  # nobody asked to commit it, or the broker refused
    UNKNOWN = "unknown"  # it was asked to commit, and no answer came


@dataclass(frozen=True, slots=True)
class Leg:
    """One record of a transfer, as it is written into a record's value."""

    writer: str  # the transactional id
    life: int  # which process of that id: the first is 0
    number: int  # of the transfer, within the life
    leg: int
    legs: int

    @property
    def transfer(self) -> tuple[str, int, int]:
        return self.writer, self.life, self.number

    def to_bytes(self, padding: int = 0) -> bytes:
        fields = [self.writer, self.life, self.number, self.leg, self.legs, "." * padding]
        return json.dumps(fields).encode()

    @classmethod
    def of(cls, value: bytes) -> Leg:
        writer, life, number, leg, legs, _ = json.loads(value)
        return cls(writer, life, number, leg, legs)


@dataclass(slots=True)
class Transfer:
    """What its writer knows of a transfer."""

    outcome: Outcome
    partitions: tuple[str, ...]  # of each leg, as `topic-partition`


@dataclass(frozen=True, slots=True)
class Read:
    """A leg that a committed reader got."""

    partition: str  # as `topic-partition`
    offset: int
    leg: Leg


@dataclass(frozen=True, slots=True)
class Copied:
    """A record that a chain (consume, transform, produce) wrote: where its input lies."""

    partition: str  # of the input
    offset: int
    output: str  # where the copy lies


@dataclass(slots=True)
class Chain:
    """The run of a consume–transform–produce group over one input topic."""

    inputs: dict[str, set[int]] = field(default_factory=dict)  # partition → committed offsets
    copies: list[Copied] = field(default_factory=list)
    committed: dict[str, int] = field(default_factory=dict)  # the group's offsets at the end


@dataclass(slots=True)
class History:
    transfers: dict[tuple[str, int, int], Transfer] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    #: (partition, offset) where the last reading got another record than one before it
    changed: list[tuple[str, int]] = field(default_factory=list)
    #: (partition, offset) that an earlier reader got and the last one did not
    vanished: list[tuple[str, int]] = field(default_factory=list)
    chain: Chain = field(default_factory=Chain)
