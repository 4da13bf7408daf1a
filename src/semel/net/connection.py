"""One client's connection on the server's side: frames in, answers out, both in order.

Reading: small frames pass through a scratch buffer shared by all connections (the loop reads and
parses in one go, so nobody else can touch it meanwhile) and are copied out; a frame that is cut
off is read straight into its own bytearray. Writing: answers that are ready in one turn of the
loop leave in one write. Stretches of files go out by `sendfile`. A client that does not read its
answers is not read from. One that sends many requests at once has some of them started, then the
others' turn comes: a turn is bounded in requests and in time.

Most often one whole request comes while nothing else is under way, and is answered at once: that
way, `readable`, is short, for beside busy clients the caches are cold and every line of code costs.
Everything else takes the long way.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections import deque
from contextlib import suppress
from typing import Any

from semel.net.host import Host, Waiting
from semel.net.memory import empty_frame
from semel.net.outbox import FileEnded, Outbox
from semel.net.slots import Slot

log = logging.getLogger("semel.net")

SCRATCH_SIZE = 1 << 18
#: A frame's bytearray starts no larger than this and grows as bytes arrive: four bytes that promise
#: 100 MB cost the sender 100 MB before they cost us.
FIRST_CHUNK = 1 << 20
#: A frame no larger than this is kept to be filled again.
LARGEST_SPARE = 1 << 22
#: By how much it grows at once.
LARGEST_STEP = 1 << 23
#: Unsent bytes of answers beyond which no more requests of a connection are started.
MOST_UNSENT = 1 << 20
#: Bytes of requests that wait for their answers beyond which no more are started.
MOST_WAITING = 1 << 25
#: Requests of one connection that are started in one turn of the loop, and the time after which no
#: further one is: whoever sends a thousand at once waits for everybody else in between.
MOST_PER_TURN = 64
TURN_SECONDS = 0.002
LINGER_SECONDS = 0.2
read_length = struct.Struct(">i").unpack_from


class Connection:
    __slots__ = (
        "_at_rest",
        "_blocked",
        "_carry",
        "_draining",
        "_filled",
        "_flush_planned",
        "_frame",
        "_held",
        "_held_by",
        "_host",
        "_inbox",
        "_left_in_turn",
        "_loop",
        "_outbox",
        "_reading",
        "_receiving",
        "_size",
        "_socket",
        "_stands_in_line",
        "_turn_ends",
        "_waiting",
        "_waiting_size",
        "closed",
        "idle_since",
        "is_active",
        "listener",
        "local_host",
        "peer_host",
        "peer_port",
        "principal",
        "request_size",
        "session",
        "state",
        "waits",
    )

    def __init__(
        self, host: Host, loop: asyncio.AbstractEventLoop, accepted: socket.socket, peer: Any
    ) -> None:
        self._host = host
        self._loop = loop
        self._socket = accepted
        self.peer_host: str = peer[0]
        self.peer_port: int = peer[1]
        self.local_host: str = accepted.getsockname()[0]
        self.listener: str = host.name  # the name of the one it came by
        self.principal: Any = host.principal  # who it is, as far as is known
        self.idle_since = loop.time()  # as the listener saw it on its last round, unless …
        self.is_active = False  # … this came true since
        self._carry = b""  # the first bytes of a frame whose length is not known yet
        self._frame: bytearray | None = None  # a frame being read straight into place …
        self._filled = 0  # … so far …
        self._size = 0  # … of so many bytes
        self._inbox: deque[bytearray] = deque()  # read, but not started: something holds them back
        self._waiting: deque[Slot] = deque()  # started, and in order of their answers
        self._waiting_size = 0
        self._held = 0  # bytes of all these, as the host's memory knows
        self._stands_in_line = False  # to read on: too much is held by all connections
        self.request_size = 0
        self._held_by: Slot | None = None
        self._outbox = Outbox()  # answers not sent yet
        self._reading = True
        self._receiving = False
        self._blocked = False
        self._draining = False
        self._flush_planned = False
        self._left_in_turn = 0  # so many more requests may be started now …
        self._turn_ends = 0.0  # … up to this time
        self._at_rest = True  # nothing of all this is under way; found out by `_flush` alone
        self.closed = False
        self.state: Any = None  # whatever the service above wants to remember
        self.session: Any = None  # … and of how the client has shown who it is
        self.waits: set[Waiting] = set()  # what need not wait longer than the connection lives

    def move_to(self, host: Host) -> None:
        """Have another look after it from the next request on."""
        self._host = host

    # Reading

    def readable(self) -> Any:
        """Something came. The short way, whose answer is for `send`; what does not fit it is handed
        to the long one."""
        if not self._at_rest:
            self._read_on()
            return None
        host = self._host
        scratch = host.scratch
        try:
            count = self._socket.recv_into(scratch)
        except OSError as problem:
            self._not_read(problem)
            return None
        (size,) = read_length(scratch)
        if not 0 < size == count - 4 <= host.limits.short_frame_size:
            self._take_in(count)
            return None
        self.is_active = True
        self.request_size = size
        answer = host.receive(self, scratch[4:count])
        if answer is None or answer.regions:
            self._conclude(answer)
            return None
        return answer

    def send(self, answer: Any) -> None:
        try:
            sent = self._socket.send(answer)
        except OSError:  # what it means is found out the long way
            sent = 0
        if sent != len(answer):
            self._outbox.put_rest(answer, sent)
            self._flush()

    def _read_on(self) -> None:
        """The long way, for whatever may be under way."""
        if not self._reading:  # told all the same: nobody is there any more
            self._end()
            return
        try:
            count = self._socket.recv_into(self._room())
        except OSError as problem:
            self._not_read(problem)
            return
        self._take_in(count)

    def _not_read(self, problem: OSError) -> None:
        if not isinstance(problem, BlockingIOError | InterruptedError):
            self._end()

    def _take_in(self, count: int) -> None:
        """Start what is whole now that so many bytes came."""
        if not count:
            self._end()
            return
        self.is_active = True
        self._receiving = True
        self._begin_turn()
        if self._frame is None:
            self._take_scratch(len(self._carry) + count)
        else:
            self._filled += count
            if self._filled == self._size:
                frame, self._frame = self._frame, None
                if self._take(frame) and len(frame) <= LARGEST_SPARE:
                    self._host.spare = frame
        self._conclude(None)

    def _conclude(self, answer: Any) -> None:
        """All that was read is given to the host: send what there is to send."""
        self._receiving = True
        if answer is not None:
            self.reply(answer)
        self._host.finish()
        self._receiving = False
        self._flush()

    def _room(self) -> memoryview:
        """Where the next bytes go."""
        frame = self._frame
        if frame is None:
            carry = self._carry
            if not carry:
                return memoryview(self._host.scratch)
            room = memoryview(self._host.scratch)
            room[: len(carry)] = carry
            return room[len(carry) :]
        if self._filled == len(frame):
            frame.extend(bytes(min(len(frame), self._size - len(frame), LARGEST_STEP)))
        return memoryview(frame)[self._filled :]

    def _take_scratch(self, end: int) -> None:
        """Start the requests whose frames are whole; keep the beginning of one that is not."""
        scratch = self._host.scratch
        self._carry = b""
        start = 0
        while end - start >= 4 and not self.closed:
            (size,) = read_length(scratch, start)
            if not 0 < size <= self._host.limits.max_frame_size:
                self._refuse(size)
                return
            start += 4
            if start + size > end:
                self._begin_frame(size, memoryview(scratch)[start:end])
                return
            self._take(scratch[start : start + size])
            start += size
        if start < end:
            self._carry = bytes(scratch[start:end])

    def _begin_frame(self, size: int, beginning: memoryview) -> None:
        self._frame = empty_frame(self._host, max(min(size, FIRST_CHUNK), len(beginning)))
        self._frame[: len(beginning)] = beginning
        self._filled, self._size = len(beginning), size

    def _refuse(self, size: int) -> None:
        self.close(f"frame of {size} bytes, allowed are 1 to {self._host.limits.max_frame_size}")

    def _take(self, frame: bytearray) -> bool:
        """Start the request if it may be started; whether it was."""
        if self._draining:
            return False
        if self._inbox or not self._may_start():
            self._inbox.append(frame)
            self._pause()
            return False
        self._start(frame)
        return True

    def _start(self, frame: bytearray) -> None:
        self.request_size = len(frame)
        host = self._host
        is_short = len(frame) <= host.limits.short_frame_size
        answer = (host.receive if is_short else host.receive_large)(self, frame)
        if answer is not None:
            self.reply(answer)
        self._left_in_turn -= 1
        if self._loop.time() > self._turn_ends:
            self._left_in_turn = 0

    def _begin_turn(self) -> None:
        self._left_in_turn = 1 if self._host.turns else MOST_PER_TURN
        self._turn_ends = self._loop.time() + TURN_SECONDS

    def _may_start(self) -> bool:
        """Whether the next request may begin: answers are read, and not too many are open."""
        return self._left_in_turn > 0 and self._has_room()

    def _has_room(self) -> bool:
        return (
            self._held_by is None
            and self._outbox.size <= MOST_UNSENT
            and self._waiting_size <= MOST_WAITING
            and len(self._waiting) < self._host.limits.max_waiting
        )

    # Answering (called by the service above)

    def reply(self, frame: Any) -> None:
        """Answer the request just received."""
        if self._waiting:
            slot = self.reserve()
            slot.frame, slot.filled = frame, True
        else:
            self._at_rest = False
            self._outbox.put(frame)
            if not self._receiving:
                self._plan_flush()

    def reserve(self, exclusive: bool = False) -> Slot:
        """Keep the place of a later answer; `exclusive` starts no request before it is filled."""
        slot = Slot(self, self.request_size)
        self._at_rest = False
        self._waiting.append(slot)
        self._waiting_size += slot.request_size
        if exclusive:
            self._held_by = slot
        return slot

    def close(self, reason: str | None = None) -> None:
        """End the connection now, with one log line if there is a reason to tell."""
        if reason is not None and not self.closed:
            log.warning(
                "closed a connection",
                extra={"peer": f"{self.peer_host}:{self.peer_port}", "reason": reason},
            )
        self._end()

    def mute(self, seconds: float) -> None:
        """Start no further request for so long; what was started is answered."""
        self._held_by = silence = Slot(self, 0)
        self._at_rest = False
        self._loop.call_later(seconds, silence.release)

    def drain(self) -> None:
        """Start no more requests; close once every request that was started is answered."""
        self._draining = True
        self._at_rest = False
        self._inbox.clear()
        if self.is_settled:
            self._finish()

    def _finish(self) -> None:
        """End our side, and give the client a moment to take the last answers and end its own.
        Closing at once, with something it sent still unread, would make the kernel throw away what
        is on its way to the client."""
        if not self.closed:
            self.closed = True
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._loop.call_later(LINGER_SECONDS, self._end)

    @property
    def host(self) -> str:
        """The client's address, as rules about hosts mean it."""
        return self.peer_host

    @property
    def is_settled(self) -> bool:
        """Nothing is owed to the client."""
        return not self._waiting and not self._outbox.size and not self._blocked

    @property
    def awaits_answer(self) -> bool:
        """The client waits for us: something is started, nothing finished waits to be taken."""
        return bool(self._waiting) and not self._outbox.size and not self._blocked

    def _slot_filled(self) -> None:
        if self.closed:
            return
        waiting = self._waiting
        while waiting and waiting[0].filled:
            slot = waiting.popleft()
            self._waiting_size -= slot.request_size
            if slot.frame is not None:
                self._outbox.put(slot.frame)
        if self._held_by is not None and self._held_by.filled:
            self._held_by = None
        if not self._receiving:
            self._plan_flush()

    def _released(self, slot: Slot) -> None:
        if self._held_by is slot:
            self._held_by = None
            if self._inbox and not self._receiving:
                self._plan_flush()

    # Writing

    def _plan_flush(self) -> None:
        if not self._flush_planned:
            self._flush_planned = True
            self._host.turns.plan(self, self._loop, must_wait=bool(self._inbox))

    def next_turn(self) -> None:
        self._flush_planned = False
        self._begin_turn()
        self._left_in_turn = MOST_PER_TURN
        self._flush()

    def _flush(self) -> None:
        """Send what is ready, then start what was held back, as long as the socket takes it and the
        turn lasts."""
        while True:
            while self._outbox.size and not self._blocked and not self.closed:
                self._send_some()
            if not self._inbox or self.closed or not self._may_start():
                break
            self._start_held()
        if not self._inbox and not self._reading and not self._stands_in_line:
            self._resume()
        elif self._inbox and self._has_room():
            self._plan_flush()
        if self._draining and self.is_settled:
            self._finish()
        self._at_rest = (
            self._reading
            and self._frame is None
            and not (self._carry or self._waiting or self._outbox.size)
            and not (self._draining or self._held_by)
        )
        if not self._at_rest or self._held:
            self._count_held()

    def _count_held(self) -> None:
        """Tell the host's memory what this connection's requests take, and stand in line if that is
        full and the next bytes of a frame would add to it."""
        memory, frame = self._host.memory, self._frame
        held = self._waiting_size + sum(map(len, self._inbox)) + len(frame or b"")
        held = 0 if self.closed else held
        given_back = held < self._held
        memory.hold(held - self._held)
        self._held = held
        if frame is not None and memory.is_full and not self.closed:
            memory.queue(self, self._size, self._loop)
        elif given_back:
            memory.leave(self, self._loop.time())

    def pause_reading(self) -> None:
        self._stands_in_line = True
        self._pause()

    def read_again(self) -> None:
        self._stands_in_line = False
        if not self._inbox and not self._reading:
            self._resume()

    def _start_held(self) -> None:
        self._receiving = True
        while self._inbox and self._may_start() and not self.closed:
            self._start(self._inbox.popleft())
        self._host.finish()
        self._receiving = False

    def _send_some(self) -> None:
        try:
            self._outbox.send(self._socket)
        except (BlockingIOError, InterruptedError):
            self._block()
        except OSError:
            self._end()
        except FileEnded as problem:
            self.close(str(problem))
        else:
            self.is_active = True

    def _block(self) -> None:
        self._blocked = True
        self._host.watcher.want(self._socket.fileno(), self._reading, True)

    def writable(self) -> None:
        self.is_active = True
        self._blocked = False
        self._host.watcher.want(self._socket.fileno(), self._reading, False)
        self._begin_turn()
        self._flush()

    # Back-pressure

    def _pause(self) -> None:
        if self._reading and not self.closed:
            self._reading = False
            self._host.watcher.want(self._socket.fileno(), False, self._blocked)

    def _resume(self) -> None:
        if not self.closed:
            self._reading = True
            self._host.watcher.want(self._socket.fileno(), True, self._blocked)

    # The end

    def _end(self) -> None:
        """Close the socket, and forget all that was under way."""
        self.closed = True
        fd = self._socket.fileno()
        if fd < 0:
            return
        self._host.watcher.forget(fd)
        self._socket.close()
        self._outbox.clear()
        self._inbox.clear()
        self._waiting.clear()
        self._waiting_size = 0
        self._count_held()
        for waiting in tuple(self.waits):
            waiting.abandon()
        self._host.forget(self)
