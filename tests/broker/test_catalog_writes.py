"""Changes of the catalog: written together off the loop, and seen by nobody before."""

import asyncio
import errno
import threading

import pytest

from semel.broker.catalog.journal import Journal, read
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.create_partitions import CreatePartitionsRequest
from semel.wire.messages.create_topics import CreateTopicsRequest
from semel.wire.messages.delete_topics import DeleteTopicsRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from semel.wire.messages.init_producer_id import InitProducerIdRequest
from semel.wire.messages.metadata import MetadataRequest


class Writes:
    """What the journal was told to append, from where; held back, or failing, as a test says."""

    def __init__(self, monkeypatch) -> None:
        self.on_loop = 0
        self.off_loop = 0
        self.gate = threading.Event()
        self.gate.set()
        self.problem: OSError | None = None
        self._append = Journal.append
        monkeypatch.setattr(Journal, "append", lambda *given: self.append(*given))

    def append(self, journal, records) -> None:
        if threading.current_thread() is threading.main_thread():
            self.on_loop += 1
        else:
            self.off_loop += 1
            self.gate.wait()
        if self.problem is not None:
            raise self.problem
        self._append(journal, records)


@pytest.fixture
def writes(broker, monkeypatch):
    writes = Writes(monkeypatch)
    yield writes
    writes.gate.set()


def asking_for(*names):
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    )


def creating(*names, partitions=1):
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    )


def deleting(*names):
    state = DeleteTopicsRequest.DeleteTopicState
    return DeleteTopicsRequest(topics=[state(name=name) for name in names])


async def test_three_thousand_topics_made_by_asking_are_one_write_off_the_loop(ask, broker, writes):
    names = [f"n.{number}" for number in range(3_000)]
    made_in_turns = []
    make = broker.partitions._make

    def counted(*given):
        made_in_turns[-1] += 1
        return make(*given)

    def turn():
        made_in_turns.append(0)
        broker.loop.call_soon(turn)

    broker.partitions._make = counted
    turn()
    answer = await ask(asking_for(*names), 12)
    assert [topic.error_code for topic in answer.topics] == [0] * 3_000
    assert (writes.on_loop, writes.off_loop) == (0, 1)
    assert max(made_in_turns) <= broker.partitions.made_at_once


async def test_requests_of_many_clients_share_writes(broker, connect, writes, until):
    askers = [await connect(broker) for _ in range(20)]
    writes.gate.clear()
    first = asyncio.create_task(askers[0](creating("first"), 7))
    await until(lambda: writes.off_loop == 1)
    rest = [
        asyncio.create_task(asker(creating(f"t{number}"), 7))
        for number, asker in enumerate(askers[1:])
    ]
    await until(lambda: len(broker.catalog._writer._waiting) == 19)
    writes.gate.set()
    answers = await asyncio.gather(first, *rest)
    assert {answer.topics[0].error_code for answer in answers} == {0}
    assert writes.off_loop == 2
    assert len(broker.catalog.topics) == 20


@pytest.mark.parametrize(
    ("second", "code"),
    [("a.b", E.TOPIC_ALREADY_EXISTS), ("a_b", E.INVALID_TOPIC_EXCEPTION)],
)
async def test_who_wants_the_same_name_at_the_same_time_comes_second(
    broker, connect, writes, until, second, code
):
    askers = [await connect(broker) for _ in range(3)]
    writes.gate.clear()
    pending = [asyncio.create_task(askers[0](creating("other"), 7))]
    await until(lambda: writes.off_loop == 1)
    for asker, name in zip(askers[1:], ("a.b", second), strict=True):
        pending.append(asyncio.create_task(asker(creating(name), 7)))
        waiting = len(pending) - 1
        await until(lambda waiting=waiting: len(broker.catalog._writer._waiting) == waiting)
    writes.gate.set()
    answers = await asyncio.gather(*pending)
    assert [answer.topics[0].error_code for answer in answers] == [0, 0, code]


async def test_what_is_not_durable_yet_is_not_there(broker, connect, writes, until):
    asker, other = await connect(broker), await connect(broker)
    writes.gate.clear()
    made = asyncio.create_task(asker(creating("t"), 7))
    await until(lambda: writes.off_loop == 1)
    assert "t" not in broker.catalog.topics
    question = asking_for("t")
    question.allow_auto_topic_creation = False
    unknown = (await other(question, 12)).topics[0]
    assert unknown.error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    writes.gate.set()
    assert (await made).topics[0].topic_id == broker.catalog.topics["t"].id


async def test_a_write_that_fails_has_not_happened_and_the_next_one_may_succeed(
    broker, ask, writes
):
    writes.problem = OSError(errno.ENOSPC, "No space left on device")
    failed = await ask(creating("t"), 7)
    assert failed.topics[0].error_code == E.KAFKA_STORAGE_ERROR
    assert "t" not in broker.catalog.topics
    writes.problem = None
    assert (await ask(creating("t"), 7)).topics[0].error_code == 0


async def test_a_coordinator_that_cannot_wait_finds_the_topic_that_was_on_its_way(
    broker, connect, writes, until
):
    asker, other = await connect(broker), await connect(broker)
    writes.gate.clear()
    made = asyncio.create_task(asker(asking_for("__consumer_offsets"), 12))
    await until(lambda: writes.off_loop == 1)
    threading.Timer(0, writes.gate.set).start()
    found = await other(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    assert found.coordinators[0].error_code == 0
    assert (await made).topics[0].topic_id == broker.catalog.topics["__consumer_offsets"].id
    assert (writes.on_loop, writes.off_loop) == (0, 1)


async def test_each_admin_request_is_one_write_off_the_loop(broker, ask, writes):
    names = [f"t{number}" for number in range(50)]
    await ask(creating(*names), 7)
    more = CreatePartitionsRequest.CreatePartitionsTopic
    grown = CreatePartitionsRequest(
        topics=[more(name=name, count=2, assignments=None) for name in names]
    )
    assert {one.error_code for one in (await ask(grown, 3)).results} == {0}
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = IncrementalAlterConfigsRequest.AlterableConfig
    altered = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=2,
                resource_name=name,
                configs=[config(name="retention.ms", config_operation=0, value="5")],
            )
            for name in names
        ]
    )
    assert {one.error_code for one in (await ask(altered, 1)).responses} == {0}
    assert {one.error_code for one in (await ask(deleting(*names), 6)).responses} == {0}
    assert (writes.on_loop, writes.off_loop) == (0, 4)
    assert not broker.catalog.topics


async def test_one_topic_deleted_by_name_and_by_id_is_deleted_once(broker, ask):
    await ask(creating("t"), 7)
    request = deleting("t")
    id = broker.catalog.topics["t"].id
    request.topics.append(DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=id))
    answers = (await ask(request, 6)).responses
    assert [answer.error_code for answer in answers] == [0, E.UNKNOWN_TOPIC_ID]


async def test_producer_ids_are_fetched_before_the_last_is_given_out(broker, ask, writes, until):
    request = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    given = []
    for _ in range(2_500):
        given.append((await ask(request, 4)).producer_id)
        await until(lambda: not broker.partitions.producer_ids._is_ordered)
    assert len(set(given)) == 2_500
    assert writes.on_loop == 1  # the first of all
    assert writes.off_loop == 2


async def test_the_journal_is_rewritten_off_the_loop(broker, ask, writes, monkeypatch, until):
    monkeypatch.setattr("semel.broker.catalog.catalog.SMALLEST_REWRITE", 2_000)
    threads = []
    replace = Journal.replace

    def noted(journal, records):
        threads.append(threading.current_thread())
        replace(journal, records)

    monkeypatch.setattr(Journal, "replace", noted)
    for _ in range(40):
        await ask(creating("t"), 7)
        await ask(deleting("t"), 6)
    await ask(creating("last"), 7)
    await until(lambda: threads)
    assert threading.main_thread() not in threads
    records, _ = read((broker.data / "metadata.log").read_bytes())
    assert len(records) < 60
    assert broker.catalog.topics.keys() == {"last"}


async def test_stopping_writes_what_was_decided_and_lets_go_of_what_waits(
    start_broker, connect, monkeypatch, until, tmp_path
):
    broker = await start_broker(tmp_path / "one")
    writes = Writes(monkeypatch)
    asker = await connect(broker)
    writes.gate.clear()
    asker.send(creating("t"), 7)
    await until(lambda: writes.off_loop == 1)
    threading.Timer(0, writes.gate.set).start()
    await broker.stop()
    again = await start_broker(tmp_path / "one")
    assert "t" in again.catalog.topics


async def test_two_that_delete_a_topic_which_is_being_made_delete_it_once(
    broker, connect, writes, until
):
    """Found by fuzzing: both were decided before the topic was there, and written together."""
    askers = [await connect(broker) for _ in range(4)]
    writes.gate.clear()
    pending = []
    for asker, request in zip(
        askers, (creating("other"), creating("t"), deleting("t"), deleting("t")), strict=True
    ):
        pending.append(asyncio.create_task(asker(request, 6)))
        waiting = len(pending) - 1
        await until(lambda waiting=waiting: len(broker.catalog._writer._waiting) == waiting)
        await until(lambda: writes.off_loop == 1)
    writes.gate.set()
    answers = await asyncio.gather(*pending)
    codes = [answer.responses[0].error_code for answer in answers[2:]]
    assert sorted(codes) in ([0, E.UNKNOWN_TOPIC_OR_PARTITION], [3, 3])
    assert (await askers[0](creating("later"), 6)).topics[0].error_code == 0
