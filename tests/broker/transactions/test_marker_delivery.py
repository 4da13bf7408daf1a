"""Markers for partitions led elsewhere: over the wire, to a second broker or a scripted peer."""

import asyncio
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semel.broker.coordinators.marker_channel import WireChannel
from semel.broker.coordinators.marker_sender import GONE, NOWHERE, MarkerSender, PendingCompleteTxn
from semel.core.transactions.commands import WriteMarkers
from semel.core.transactions.states import TxnState
from semel.core.transactions.transaction import Transaction
from semel.wire.batches import BatchBuilder, BatchHeader
from semel.wire.errors import ErrorCode as E
from semel.wire.frames import decode_request, encode_response
from semel.wire.messages.write_txn_markers import WriteTxnMarkersResponse as Response

A, B = ("t", 0), ("t", 1)


def order(*partitions, producer_id=7, commit=True):
    state = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
    prepared = Transaction(
        "etl", producer_id, 1, 60_000, state, frozenset(partitions), client_version=2
    )
    return WriteMarkers(prepared)


class Peer:
    """Answers WriteTxnMarkers as it is told: `answers` are error codes by partition, a whole
    request each; "hang up" closes the connection instead. Then everything succeeds."""

    def __init__(self, answers=()) -> None:
        self.answers = list(answers)
        self.requests = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def serve(self, reader, writer):
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                header, request = decode_request(bytearray(await reader.readexactly(size)))
                self.requests.append(request)
                await self.hold.wait()
                answer = self.answers.pop(0) if self.answers else {}
                if answer == "hang up":
                    break
                response = self.respond(request, answer)
                writer.write(encode_response(header.correlation_id, response, header.api_version))
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    def respond(self, request, errors):
        return Response(
            markers=[
                Response.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        Response.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                Response.WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=errors.get((topic.name, index), E.NONE),
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    @property
    def sent(self):
        """Which partitions each request named."""
        return [
            [
                (topic.name, index)
                for marker in request.markers
                for topic in marker.topics
                for index in topic.partition_indexes
            ]
            for request in self.requests
        ]


@pytest.fixture
async def scripted():
    """A sender whose partitions are all led by one scripted peer."""
    servers, senders = [], []

    async def start(broker, *answers):
        peer = Peer(answers)
        server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        sender = MarkerSender(
            broker,
            leader_of=lambda topic, index: 2,
            open_channel=lambda broker_id: WireChannel("127.0.0.1", port, "semel-1"),
        )
        servers.append(server)
        senders.append(sender)
        return sender, peer

    yield start
    for sender in senders:
        await sender.close()
    for server in servers:
        server.close()


def pending(order, still=lambda: True):
    complete = asyncio.get_running_loop().create_future()
    return PendingCompleteTxn(order, 5, still, complete.set_result), complete


def send(sender, pending):
    sender.send(pending, sender.write(pending.progress.order.prepared, 5))


async def test_a_second_broker_writes_the_markers(start_broker, tmp_path):
    coordinator = await start_broker(tmp_path / "a")
    leader = await start_broker(tmp_path / "b")
    leader.catalog.create_topic("t", 2)
    for partition in leader.partitions.of("t"):
        open_transaction(partition, producer_id=7, epoch=0)
        assert partition.last_stable_offset == 0
    sender = MarkerSender(
        coordinator,
        leader_of=lambda topic, index: 2,
        open_channel=lambda broker_id: WireChannel("127.0.0.1", leader.port, "semel-1"),
    )
    txn, complete = pending(order(A, B))
    send(sender, txn)
    assert sender.queued == {"2": 2}
    await complete
    for partition in leader.partitions.of("t"):
        assert partition.last_stable_offset == 2
        assert partition.state.producers.get(7).epoch == 1
        assert partition.state.producers.get(7).coordinator_epoch == 5
    await sender.close()


def open_transaction(partition, producer_id, epoch):
    builder = BatchBuilder()
    builder.append(None, b"x", partition._now_ms())
    batch = BatchHeader(
        builder.build(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
        )
    )
    guard = partition.state.ask_verification(batch, True, partition._now_ms())
    partition.append(batch, guard)


async def test_markers_that_queue_up_while_a_request_is_out_leave_in_one(broker, scripted, until):
    sender, peer = await scripted(broker)
    peer.hold.clear()
    first, first_complete = pending(order(A, producer_id=1))
    send(sender, first)
    others = [pending(order(A, B, producer_id=number)) for number in (2, 3, 4)]
    await until(lambda: peer.requests)
    for other, _ in others:
        send(sender, other)
    peer.hold.set()
    await asyncio.gather(first_complete, *(complete for _, complete in others))
    assert [len(request.markers) for request in peer.requests] == [1, 3]
    marker = peer.requests[1].markers[0]
    assert (marker.coordinator_epoch, marker.transaction_version) == (5, 2)
    assert (marker.producer_epoch, marker.transaction_result) == (1, True)


@pytest.mark.parametrize(
    "answer",
    [
        {A: E.NOT_LEADER_OR_FOLLOWER},
        {A: E.UNKNOWN_TOPIC_OR_PARTITION},
        {A: E.NOT_ENOUGH_REPLICAS},
        {A: E.NOT_ENOUGH_REPLICAS_AFTER_APPEND},
        {A: E.REQUEST_TIMED_OUT},
        {A: E.KAFKA_STORAGE_ERROR},
    ],
)
async def test_what_may_pass_is_looked_up_and_sent_again(broker, scripted, answer):
    sender, peer = await scripted(broker, answer)
    txn, complete = pending(order(A, B))
    send(sender, txn)
    await complete
    assert peer.sent == [[A, B], [A]]


async def test_a_lost_connection_is_opened_again(broker, scripted):
    sender, peer = await scripted(broker, "hang up")
    txn, complete = pending(order(A, B))
    send(sender, txn)
    await complete
    assert peer.sent == [[A, B], [A, B]]


@pytest.mark.parametrize("error", [E.UNSUPPORTED_VERSION, E.UNSUPPORTED_FOR_MESSAGE_FORMAT])
async def test_a_partition_without_transactions_is_dropped(broker, scripted, error):
    sender, peer = await scripted(broker, {A: error})
    txn, complete = pending(order(A, B))
    send(sender, txn)
    await complete
    assert peer.sent == [[A, B]]


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
async def test_a_newer_epoch_ends_the_sending(broker, scripted, until, error):
    sender, _ = await scripted(broker, {A: error})
    txn, complete = pending(order(A, B))
    send(sender, txn)
    await until(lambda: txn.progress.cancelled)
    assert not complete.done()
    assert sender.queued == {}


async def test_what_cannot_be_is_logged_loudly_and_pays_nothing(broker, scripted, until, caplog):
    sender, _ = await scripted(broker, {A: E.CORRUPT_MESSAGE})
    txn, complete = pending(order(A, B))
    send(sender, txn)
    await until(lambda: any(record.levelname == "ERROR" for record in caplog.records))
    assert not complete.done()


async def test_a_coordinator_that_lost_its_partition_stops_sending(broker, scripted, until):
    sender, peer = await scripted(broker, "hang up")
    still = [True]
    txn, complete = pending(order(A), still=lambda: still[0])
    send(sender, txn)
    await until(lambda: sender.queued == {"unknown": 1})
    still[0] = False
    await until(lambda: sender.queued == {})
    assert not complete.done()
    assert len(peer.requests) == 1


async def test_an_unknown_leader_is_looked_up_until_it_is_known(broker, scripted):
    sender, peer = await scripted(broker)
    places = [NOWHERE, NOWHERE]
    sender.leader_of = lambda topic, index: places.pop() if places else 2
    txn, complete = pending(order(A))
    send(sender, txn)
    assert sender.queued == {"unknown": 1}
    await complete
    assert peer.sent == [[A]]


async def test_a_topic_that_is_gone_needs_no_marker(broker, scripted):
    sender, peer = await scripted(broker)
    sender.leader_of = lambda topic, index: GONE if index == 0 else 2
    txn, complete = pending(order(A, B))
    send(sender, txn)
    await complete
    assert peer.sent == [[B]]


async def test_markers_led_here_are_written_before_send_returns(broker):
    broker.catalog.create_topic("t", 2)
    for partition in broker.partitions.of("t"):
        open_transaction(partition, producer_id=7, epoch=0)
    sender = MarkerSender(broker)
    reports = count()
    txn = PendingCompleteTxn(order(A, B), 5, lambda: True, lambda order: next(reports))
    send(sender, txn)
    assert txn.settled
    assert next(reports) == 1
    assert [partition.last_stable_offset for partition in broker.partitions.of("t")] == [2, 2]


transactions = st.lists(
    st.tuples(
        st.integers(1, 3),  # producer
        st.integers(0, 3),  # epoch
        st.booleans(),  # commit
        st.frozensets(st.integers(0, 3), min_size=1),  # partitions; there is no number 3
        st.sampled_from([0, 2]),  # transaction version
        st.frozensets(st.integers(0, 2)),  # those with records in them
    ),
    max_size=6,
)


async def test_markers_written_at_once_are_those_that_are_sent(broker):
    """`write` is the short way of one broker; the long way through `send` leaves the same logs."""
    names = count()

    @settings(max_examples=40, deadline=None)
    @given(transactions)
    def agree(drawn):
        sides = [f"{how}-{next(names)}" for how in ("write", "send")]
        for topic in sides:
            broker.catalog.create_topic(topic, 3)
        for producer_id, epoch, commit, indexes, version, written in drawn:
            left = [
                end(topic, producer_id, epoch, commit, indexes, version, written) for topic in sides
            ]
            assert left[0] == left[1]
            assert log_of(sides[0]) == log_of(sides[1])

    def end(topic, producer_id, epoch, commit, indexes, version, written):
        for index in written & indexes:
            open_transaction(broker.partitions.find(topic, index), producer_id, epoch)
        state = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
        partitions = frozenset((topic, index) for index in indexes)
        prepared = Transaction(
            "etl", producer_id, epoch, 60_000, state, partitions, client_version=version
        )
        sender, told = MarkerSender(broker), []
        txn = PendingCompleteTxn(WriteMarkers(prepared), 5, lambda: True, told.append)
        left = sender.write(prepared, 5) if topic.startswith("write") else dict.fromkeys(partitions)
        sender.send(txn, left)
        progress = txn.progress
        return len(told), progress.cancelled, {index for _, index in progress.partitions}

    def log_of(topic):
        facts = []
        for partition in broker.partitions.of(topic):
            producers = {
                producer_id: (entry.epoch, entry.coordinator_epoch, entry.open_since_offset)
                for producer_id, entry in partition.state.producers.items()
            }
            facts.append((partition.high_watermark, partition.last_stable_offset, producers))
        return facts

    agree()
