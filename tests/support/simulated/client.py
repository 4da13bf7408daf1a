"""A simulated producer. It keeps the protocol, asks again when it hears nothing, and never gives up
by itself: when another takes its transactional id it goes on as a zombie until it hears that."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from semel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tests.support.simulated.world import World

AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)
NOBODY = (-1, -1)
MUST_ABORT = frozenset({ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})


@dataclass
class Attempt:
    """One transaction as its client knows it. `outcome` is what the client was told."""

    name: str
    acknowledged: list[str] = field(default_factory=list)
    asked_to_commit: bool = False
    outcome: bool | None = None


@dataclass(eq=False)
class Request:
    client: "Client"
    kind: str  # init, add, produce, end
    identity: tuple[int, int]
    partition: int = -1
    sequence: int = -1
    tag: str = ""
    commit: bool = False
    takeovers: int = 0


class Client:
    def __init__(self, world: "World", name: str, transactional_id: str, version: int) -> None:
        self.world = world
        self.name = name
        self.transactional_id = transactional_id
        self.version = version
        self.identity = NOBODY
        self.alive = True
        self.attempts: list[Attempt] = []
        self.open: Attempt | None = None
        self.waiting_for: Request | None = None
        self._added: set[int] = set()
        self._sequences: dict[int, int] = {}
        self._must_abort = False
        self._recovers = False
        self._takeovers = 0
        self._dawdles = world.dice.random() < 0.1

    def act(self) -> None:
        """Do the next thing, or ask again."""
        if not self.alive:
            return
        if self.waiting_for is not None:
            if self.world.dice.random() < 0.3:
                self.world.send(self.waiting_for)
            return
        if self.identity == NOBODY or self._recovers:
            self._ask(Request(self, "init", self.identity))
        elif self.open is None:
            self._begin()
        elif self._must_abort or self.world.dice.random() < self._ends_with():
            self._end()
        else:
            self._write()

    def _ends_with(self) -> float:
        if self._dawdles:
            return 0.01
        return 0.3 if self.open is not None and self.open.acknowledged else 0.05

    def hear(self, request: Request, error: ErrorCode, reply: Any = None) -> None:
        """An answer. One that nobody waits for any more is a late twin."""
        if request is not self.waiting_for or not self.alive:
            return
        if error in AGAIN:
            return  # still waiting: `act` asks again
        self.waiting_for = None
        if self.version < 2:
            # Connections keep their order; version 1 relies on it (KIP-890 is about just that).
            self.world.forget(request)
        if error in MUST_ABORT:
            self._must_abort = True
        elif error is not ErrorCode.NONE:
            self.alive = False
            if error is ErrorCode.PRODUCER_FENCED and request.kind != "produce":
                taken_over = self.world.takeovers[self.transactional_id] > self._takeovers
                assert taken_over, f"{self.name} was fenced by nobody"
        else:
            getattr(self, f"_heard_{request.kind}")(request, reply)

    def _ask(self, request: Request) -> None:
        self.waiting_for = request
        self.world.send(request)

    def _begin(self) -> None:
        if self.world.dice.random() < 0.05:
            self._recovers = True  # as after an error: go on with what it holds (KIP-360)
            return
        self.open = Attempt(f"{self.name}/{len(self.attempts)}")
        self.attempts.append(self.open)
        self._added.clear()
        self._must_abort = False

    def _write(self) -> None:
        assert self.open is not None
        index = self.world.dice.randrange(len(self.world.partitions))
        # Where markers come late, version 1 has no defence against this (KIP-890 tells why).
        careless = self.world.markers_first and self.world.dice.random() < 0.02
        if self.version < 2 and index not in self._added and not careless:
            self._ask(Request(self, "add", self.identity, index))
            return
        tag = f"{self.open.name}/{self.world.next_tag()}"
        sequence = self._sequences.get(index, 0)
        self._ask(Request(self, "produce", self.identity, index, sequence, tag))

    def _end(self) -> None:
        assert self.open is not None
        empty = not self.open.acknowledged
        if empty and not self._added and self.version < 2:
            self.open = None  # nothing was sent: there is nothing to end
            return
        commit = not self._must_abort and not empty and self.world.dice.random() < 0.6
        self.open.asked_to_commit = commit
        self._ask(Request(self, "end", self.identity, commit=commit))

    def _heard_init(self, request: Request, reply: Any) -> None:
        self.identity = (reply.producer_id, reply.epoch)
        self._sequences.clear()
        self._recovers = False
        self._takeovers = request.takeovers
        self.world.heard_identity(self, self.identity)

    def _heard_add(self, request: Request, reply: Any) -> None:
        self._added.add(request.partition)

    def _heard_produce(self, request: Request, reply: Any) -> None:
        assert self.open is not None
        self.open.acknowledged.append(request.tag)
        self._added.add(request.partition)
        self._sequences[request.partition] = request.sequence + 1

    def _heard_end(self, request: Request, reply: Any) -> None:
        assert self.open is not None
        self.open.outcome = request.commit
        self.open = None
        if self.version >= 2:
            self.identity = (reply.producer_id, reply.epoch)
            self._sequences.clear()
            self.world.heard_identity(self, self.identity)
