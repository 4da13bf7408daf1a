"""A client lives on one event loop of one process: everywhere else it says so, and where to go."""

import asyncio
import multiprocessing
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.conftest import MakeTopic

from semel import Broker
from semel.client import Admin, Consumer, Producer, UsageError, blocking

FORK = multiprocessing.get_context("fork")


def in_a_forked_child(work: Callable[[], Any]) -> Any:
    """What it returns, or the last line of what it raises, within half a minute."""
    ours, theirs = FORK.Pipe(duplex=False)

    def run() -> None:
        try:
            theirs.send(work())
        except BaseException:
            theirs.send(traceback.format_exc().strip().splitlines()[-1])

    child = FORK.Process(target=run)
    child.start()
    try:
        assert ours.poll(30), "the child hangs"
        return ours.recv()
    finally:
        child.kill()
        child.join()


def test_a_new_blocking_client_works_after_a_fork_and_the_parents_still_does(
    bootstrap: str, unique: str
) -> None:
    with blocking.Producer(bootstrap) as producer:
        assert producer.send(unique, b"parent").result().offset == 0

        def child() -> int:
            with blocking.Producer(bootstrap) as mine:
                return mine.send(unique, b"child").result().offset

        assert in_a_forked_child(child) == 1
        assert in_a_forked_child(lambda: in_a_forked_child(child)) == 2
        assert producer.send(unique, b"parent").result().offset == 3


@pytest.mark.parametrize("kind", ["producer", "consumer", "admin", "delivery"])
def test_a_client_of_the_parent_is_refused_at_once_in_a_forked_child(
    bootstrap: str, unique: str, kind: str
) -> None:
    with (
        blocking.Producer(bootstrap, linger_ms=60_000) as producer,
        blocking.Consumer(bootstrap) as consumer,
        blocking.Admin(bootstrap) as admin,
    ):
        sent = producer.send(unique, b"v")
        calls: dict[str, Callable[[], Any]] = {
            "producer": lambda: producer.send(unique, b"v"),
            "consumer": lambda: consumer.poll(1_000),
            "admin": admin.describe_cluster,
            "delivery": sent.result,
        }
        assert "fork" in in_a_forked_child(calls[kind])
        assert in_a_forked_child(producer.close) is None, "there is nothing of the child's to close"
        producer.flush()
        assert sent.result().offset == 0, "the parent's goes on"
        assert admin.describe_cluster().brokers


def test_a_client_that_was_only_made_before_the_fork_may_be_started_after_it(
    bootstrap: str, unique: str
) -> None:
    producer = blocking.Producer(bootstrap)

    def child() -> int:
        with producer:
            return producer.send(unique, b"v").result().offset

    assert in_a_forked_child(child) == 0


async def test_a_blocking_client_is_refused_on_the_loop_that_runs_the_broker() -> None:
    async with Broker() as broker:
        producer = blocking.Producer(broker.bootstrap_servers)
        with pytest.raises(UsageError, match="the event loop that runs a broker"):
            producer.start()
        elsewhere = await asyncio.to_thread(lambda: [producer.start(), producer.close()])
        assert elsewhere == [None, None]
    with Broker() as broker, blocking.Admin(broker.bootstrap_servers) as admin:
        assert admin.describe_cluster().brokers, "its own thread runs that one"


def on_another_loop(work: Callable[[], Any]) -> BaseException | None:
    """What a coroutine raises in another thread's event loop."""
    raised: list[BaseException | None] = []

    async def main() -> None:
        try:
            await work()
            raised.append(None)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    thread.join(30)
    assert raised, "it hangs"
    return raised[0]


async def test_another_event_loop_is_refused_at_once(
    bootstrap: str, make_topic: MakeTopic, unique: str
) -> None:
    topic = await make_topic()
    async with (
        Producer(bootstrap, linger_ms=60_000) as producer,
        Producer(bootstrap, transactional_id=unique) as transactional,
        Consumer(bootstrap) as consumer,
        Admin(bootstrap) as admin,
    ):
        sent = await producer.send(topic, b"one")
        for work in (
            lambda: producer.send(topic, b"two"),
            lambda: producer.send_and_wait(topic, b"two"),
            producer.flush,
            producer.close,
            transactional.init_transactions,
            transactional.begin_transaction,
            lambda: consumer.poll(1_000),
            consumer.close,
            admin.describe_cluster,
        ):
            error = on_another_loop(work)
            assert isinstance(error, UsageError), error
            assert "another event loop" in str(error)

        async def awaited() -> None:
            await sent

        error = on_another_loop(awaited)
        assert "another event loop" in str(error)
        await producer.flush()
        assert (await sent).offset == 0, "at home all is well"


def test_a_second_asyncio_run_is_another_event_loop(bootstrap: str, unique: str) -> None:
    producer = Producer(bootstrap, linger_ms=60_000)

    async def first() -> None:
        await producer.start()
        await producer.send(unique, b"one")

    async def second() -> None:
        with pytest.raises(UsageError, match="another event loop"):
            await producer.send_and_wait(unique, b"two")
        with pytest.raises(UsageError, match="another event loop"):
            await producer.flush()

    asyncio.run(first())
    asyncio.run(second())


async def test_before_it_is_started_every_client_says_so() -> None:
    producer, consumer, admin = (
        Producer("localhost:1"),
        Consumer("localhost:1"),
        Admin("localhost:1"),
    )
    for work in (
        lambda: producer.send("t", b"v"),
        producer.flush,
        producer.init_transactions,
        lambda: producer.partitions_for("t"),
        consumer.poll,
        admin.describe_cluster,
    ):
        with pytest.raises(UsageError, match="is not started"):
            await work()
