"""The shape of the two coordinators, transactions and groups: decide, append, apply, act, reply.

A machine never reads a clock, opens a socket or rolls a die. It answers a command with a `Decision`
and changes only when one of its own records is applied:

    decision = machine.decide(command, now_ms)     # looks, does not touch
    log.append(decision.records)                   # the runtime makes it durable
    machine.apply(record)  for each record         # the only way state changes
    run(decision.effects)                          # only once the records are durable,
    reply(decision.reply)                          # and the reply after the effects
    machine.resume()                               # after a reload: effects a crash has prevented

Effects go first because a transaction's markers are written before its EndTxn is answered
(docs/decisions, 5 and 6). Replaying the log through `apply` rebuilds the machine exactly. This is
what makes the broker simulable, and group commit free.

A partition's state and the client's machines are pure as well, but not of this shape: see
`core/partition/state` and `client/machines`.
"""

from typing import Any, NamedTuple, Protocol, TypeVar

from semel.wire.errors import ErrorCode

Reply_co = TypeVar("Reply_co", covariant=True)


class Command(Protocol[Reply_co]):
    """What a machine is asked. `refused` is the reply where no machine can decide it, and so says
    of what type its replies are."""

    def refused(self, error: ErrorCode, /) -> Reply_co: ...


class Decision(NamedTuple):
    """What a command leads to: an answer, records to make durable, orders to carry out after."""

    reply: Any = None
    records: tuple[Any, ...] = ()
    effects: tuple[Any, ...] = ()


class Machine(Protocol):
    """What the runtime (`broker/coordinators/runtime`) runs. A command has `refused(error)`: the
    reply that it gets where there is no machine, or where its records cannot be appended."""

    def decide(self, command: Any, now_ms: int) -> Decision: ...

    def apply(self, record: Any) -> None: ...

    def resume(self) -> tuple[Any, ...]: ...


class LogEntry(NamedTuple):
    """A machine's record as it stands in its log. With a producer id it belongs to that producer's
    transaction, and counts only once the transaction is committed."""

    key: bytes | None
    value: bytes | None
    producer_id: int = -1
    producer_epoch: int = -1


class Codec(Protocol):
    """A machine's records as bytes, and back."""

    def encode(self, record: Any) -> LogEntry | None:
        """None for a record that only memory needs: applied, never written."""

    def decode(self, entry: LogEntry) -> Any | None:
        """None for a record of a kind or version that we do not know: left alone."""

    def decode_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> Any | None:
        """The record that says how a producer's transaction ended, for a machine that cares."""
