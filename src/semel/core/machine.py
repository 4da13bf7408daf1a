"""The one shape every state machine of this project has.

A machine never reads a clock, opens a socket or rolls a die. It answers a command with a `Decision`
and changes only when one of its own records is applied:

    decision = machine.decide(command, now_ms)     # looks, does not touch
    log.append(decision.records)                   # the runtime makes it durable
    machine.apply(record)  for each record         # the only way state changes
    reply(decision.reply); run(decision.effects)   # only once the records are durable
    machine.resume()                               # after a reload: what a crash may have swallowed

Replaying the log through `apply` therefore rebuilds the machine exactly. This is what makes the
broker simulable, and group commit free.
"""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Decision:
    """What a command leads to: an answer, records to make durable, and orders to carry out after."""

    reply: Any = None
    records: tuple[Any, ...] = ()
    effects: tuple[Any, ...] = ()


class Machine(Protocol):
    def decide(self, command: Any, now_ms: int) -> Decision: ...

    def apply(self, record: Any) -> None: ...

    def resume(self) -> tuple[Any, ...]: ...
