"""Faults on demand: each kind does what it says, to whom it says, as often as it says."""

import threading
from collections.abc import Iterator

import pytest

from semel.client.blocking import Consumer, Producer
from semel.errors import FencedError, RetriableError, SemelError
from semel.testing import Kafka, NotInTime, UnusedFault


@pytest.fixture
def producer(kafka: Kafka) -> Iterator[Producer]:
    """With a transaction open."""
    with Producer(
        kafka.bootstrap_servers,
        client_id="shop",
        transactional_id="t",
        request_timeout_ms=500,
        retry_backoff_ms=10,
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_and_wait("orders", b"one")
        yield producer


def values(kafka: Kafka) -> list[bytes | None]:
    return [record.value for record in kafka.committed("orders")]


def requests(kafka: Kafka, api: str) -> list[str]:
    """How the last ones of an API were answered."""
    return [seen.answer for seen in kafka._watch.last if seen.api == api]


def test_a_lost_answer_leaves_the_request_applied(kafka: Kafka, producer: Producer) -> None:
    fault = kafka.faults.on("EndTxn").drop_reply().once()
    producer.commit_transaction()
    assert fault.struck == 1
    assert values(kafka) == [b"one"]
    assert requests(kafka, "EndTxn")[-1] == "ok", "the client asked again and was told"


def test_a_lost_request_is_not_applied(kafka: Kafka, producer: Producer) -> None:
    kafka.faults.on("EndTxn").drop_request().once()
    committing = threading.Thread(target=producer.commit_transaction)
    committing.start()
    kafka.wait_until(lambda: not kafka.faults.unused)
    assert values(kafka) == []
    committing.join()
    assert values(kafka) == [b"one"]


def test_a_connection_closed_before_leaves_nothing_applied(
    kafka: Kafka, producer: Producer
) -> None:
    kafka.faults.on("EndTxn").close_before().once()
    with kafka.faults.on("EndTxn").hold().once() as second:
        committing = threading.Thread(target=producer.commit_transaction)
        committing.start()
        second.wait()
        assert values(kafka) == []
    committing.join()
    assert values(kafka) == [b"one"]


def test_a_connection_closed_after_leaves_it_applied(kafka: Kafka, producer: Producer) -> None:
    kafka.faults.on("EndTxn").close_after().once()
    with kafka.faults.on("EndTxn").hold().once() as second:
        committing = threading.Thread(target=producer.commit_transaction)
        committing.start()
        second.wait()
        assert values(kafka) == [b"one"]
    committing.join()


def test_a_request_fails_with_the_error_that_was_chosen(kafka: Kafka, producer: Producer) -> None:
    fault = kafka.faults.on("EndTxn").fail("COORDINATOR_LOAD_IN_PROGRESS").times(2)
    producer.commit_transaction()
    assert fault.struck == 2
    assert requests(kafka, "EndTxn") == ["COORDINATOR_LOAD_IN_PROGRESS"] * 2 + ["ok"]


def test_an_error_reaches_the_client_as_kafkas(kafka: Kafka, producer: Producer) -> None:
    kafka.faults.on("EndTxn").fail("PRODUCER_FENCED").once()
    with pytest.raises(FencedError):
        producer.commit_transaction()


def test_the_nth_call_alone_is_met(kafka: Kafka, producer: Producer) -> None:
    fault = kafka.faults.on("Produce").fail("NOT_LEADER_OR_FOLLOWER").on_call(2)
    producer.send_and_wait("orders", b"two")
    assert fault.struck == 0
    producer.send_and_wait("orders", b"three")
    assert fault.struck == 1
    assert requests(kafka, "Produce")[-3:] == ["ok", "NOT_LEADER_OR_FOLLOWER", "ok"]


def test_others_are_not_met(kafka: Kafka, producer: Producer) -> None:
    point = {"client_id": "bank", "transactional_id": "u", "topic": "payments"}
    for name, value in point.items():
        fault = kafka.faults.on("Produce", **{name: value}).fail("CORRUPT_MESSAGE").always()
        producer.send_and_wait("orders", b"two")
        assert fault.struck == 0, name
    kafka.faults.clear()


@pytest.mark.parametrize(
    ("name", "value"), [("client_id", "shop"), ("transactional_id", "t"), ("topic", "orders")]
)
def test_a_client_an_id_or_a_topic_is_met(
    kafka: Kafka, producer: Producer, name: str, value: str
) -> None:
    fault = kafka.faults.on("Produce", **{name: value}).fail("NOT_LEADER_OR_FOLLOWER").once()
    producer.send_and_wait("orders", b"two")
    assert fault.struck == 1


def test_a_group_is_met(kafka: Kafka) -> None:
    kafka.produce("orders", "one")
    fault = kafka.faults.on("OffsetCommit", group_id="g").fail("NOT_COORDINATOR").once()
    with Consumer(kafka.bootstrap_servers, group_id="g") as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(timeout_ms=10_000)
        consumer.commit()
    assert fault.struck == 1
    assert kafka.committed_offsets("g") == {("orders", 0): 1}


def test_a_held_reply_is_applied_and_comes_when_released(kafka: Kafka, producer: Producer) -> None:
    hold = kafka.faults.on("EndTxn").hold_reply().once()
    done = threading.Event()
    committing = threading.Thread(target=lambda: (producer.commit_transaction(), done.set()))
    committing.start()
    kafka.wait_until(lambda: values(kafka))
    assert not done.is_set()
    hold.release()
    committing.join()
    assert done.is_set()


async def test_a_fault_is_waited_for_in_asyncio() -> None:
    async with Kafka() as kafka:
        fault = kafka.faults.on("Metadata").hold().once()
        with pytest.raises(NotInTime, match="was not met within"):
            await fault.wait_async(timeout=0.01)
        with pytest.raises(RuntimeError, match="wait_async"):
            fault.wait()
        kafka.faults.clear()


@pytest.mark.parametrize("kind", ["delay", "delay_reply"])
def test_a_delay_ends_when_the_clock_is_put_forward(kafka: Kafka, kind: str) -> None:
    kafka.topic("orders")
    fault = getattr(kafka.faults.on("Produce"), kind)(3600).once()
    with Producer(kafka.bootstrap_servers) as producer:
        sent = producer.send("orders", b"one")
        fault.wait()
        assert len(kafka.all_records("orders")) == (kind == "delay_reply")
        kafka.clock.advance(hours=1)
        sent.result()
    assert values(kafka) == [b"one"]


def test_a_fault_that_nothing_met_names_itself_and_what_came(kafka: Kafka) -> None:
    kafka.faults.on("AddPartitionsToTxn").fail("UNKNOWN_SERVER_ERROR").once()
    with pytest.raises(UnusedFault, match="no AddPartitionsToTxn came; what came: nothing"):
        kafka.verify()
    kafka.faults.clear()
    kafka.faults.on("Produce", topic="payments").fail("CORRUPT_MESSAGE").once()
    with Producer(kafka.bootstrap_servers) as producer:
        producer.send_and_wait("orders", b"one")
    complaint = (
        r"on\('Produce', topic='payments'\)\.fail\('CORRUPT_MESSAGE'\)\.once\(\), armed at "
        r".*test_faults\.py:\d+, was never met: 1 Produce came, but none that fits"
    )
    with pytest.raises(UnusedFault, match=complaint):
        kafka.verify()
    kafka.faults.clear()
    kafka.verify()


def test_the_end_of_a_with_block_asks_for_unused_faults_unless_it_failed_already() -> None:
    with pytest.raises(UnusedFault), Kafka() as kafka:
        kafka.faults.on("EndTxn").drop_reply().once()
    kafka = Kafka()
    kafka.faults.on("EndTxn").drop_reply().once()
    with pytest.raises(ZeroDivisionError), kafka:
        _ = 1 / 0


def test_a_fault_that_was_not_armed_is_named(kafka: Kafka) -> None:
    kafka.faults.on("EndTxn").drop_reply()
    with pytest.raises(UnusedFault, match=r"was never armed: end it with \.once\(\)"):
        kafka.verify()
    kafka.faults.clear()


def test_mistakes_are_named_with_the_nearest_right_word(kafka: Kafka) -> None:
    with pytest.raises(ValueError, match=r"no Kafka API 'EndTx'; did you mean 'EndTxn'\?"):
        kafka.faults.on("EndTx")
    with pytest.raises(
        ValueError, match=r"no Kafka error 'PRODUCER_FENCD'; did you mean 'PRODUCER_FENCED'"
    ):
        kafka.faults.on("EndTxn").fail("PRODUCER_FENCD")
    with pytest.raises(ValueError, match="at least once, not 0 times"):
        kafka.faults.on("EndTxn").drop_reply().times(0)
    with pytest.raises(ValueError, match="counted from 1"):
        kafka.faults.on("EndTxn").drop_reply().on_call(0)
    with pytest.raises(TypeError, match="only hold"):
        kafka.faults.on("EndTxn").drop_reply().once().release()
    with pytest.raises(ValueError, match="armed already"):
        kafka.faults.on("EndTxn").drop_reply().once().always()
    kafka.faults.clear()


def test_what_a_test_asks_meets_no_faults(kafka: Kafka) -> None:
    kafka.faults.on("Produce").fail("CORRUPT_MESSAGE").always()
    kafka.faults.on("Fetch").fail("CORRUPT_MESSAGE").always()
    kafka.produce("orders", "one")
    assert values(kafka) == [b"one"]
    kafka.faults.clear()


def test_faults_last_over_a_restart(kafka: Kafka, producer: Producer) -> None:
    fault = kafka.faults.on("EndTxn").close_before().once()
    kafka.restart()
    producer.commit_transaction()
    assert fault.struck == 1
    assert values(kafka) == [b"one"]


@pytest.mark.parametrize("kind", ["hold", "hold_reply", "drop_request", "drop_reply"])
def test_a_broker_with_requests_under_way_stops_at_once_and_quietly(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Kafka() as kafka:
        kafka.topic("orders")
        fault = getattr(kafka.faults.on("Produce"), kind)().once()
        with Producer(kafka.bootstrap_servers, delivery_timeout_ms=300) as producer:
            producer.send("orders", b"one")
            fault.wait()
            kafka.stop()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("kind", ["drop_request", "drop_reply"])
def test_a_lifted_fault_closes_the_connection_that_it_silenced(kafka: Kafka, kind: str) -> None:
    kafka.topic("orders")
    fault = getattr(kafka.faults.on("Produce"), kind)().once()
    with Producer(kafka.bootstrap_servers, request_timeout_ms=100_000) as producer:
        sent = producer.send("orders", b"one")
        fault.wait()
        fault.lift()
        sent.result()
    assert values(kafka) == [b"one"]


# What happens to the broker as a whole


def test_a_fenced_producer_is_fenced_and_its_transaction_aborted(
    kafka: Kafka, producer: Producer
) -> None:
    kafka.fence("t")
    assert [record.outcome for record in kafka.all_records("orders")] == ["aborted"]
    with pytest.raises(FencedError):
        producer.commit_transaction()
    with pytest.raises(LookupError, match=r"'nobody' was here yet; there are: t"):
        kafka.fence("nobody")


def test_a_coordinator_that_moved_is_looked_up_again(kafka: Kafka, producer: Producer) -> None:
    kafka.move_coordinator(transactional_id="t")
    producer.commit_transaction()
    assert "NOT_COORDINATOR" in requests(kafka, "EndTxn")
    assert values(kafka) == [b"one"]
    with pytest.raises(TypeError, match="say transactional_id=… or group_id=…"):
        kafka.move_coordinator()


def test_a_groups_coordinator_moves(kafka: Kafka) -> None:
    kafka.produce("orders", "one")
    with Consumer(kafka.bootstrap_servers, group_id="g") as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(timeout_ms=10_000)
        kafka.move_coordinator(group_id="g")
        consumer.commit()
    assert "NOT_COORDINATOR" in requests(kafka, "OffsetCommit")
    assert kafka.committed_offsets("g") == {("orders", 0): 1}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_whose_session_expired_is_not_known_any_more(kafka: Kafka, protocol: str) -> None:
    kafka.produce("orders", "one")
    with Consumer(kafka.bootstrap_servers, group_id="g", group_protocol=protocol) as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(timeout_ms=10_000)
        [member] = kafka.expire_session("g")
        with pytest.raises(LookupError, match=f"group 'g' has no member '{member}'"):
            kafka.expire_session("g", member_id=member)
        with pytest.raises(SemelError):
            consumer.commit()
    with pytest.raises(LookupError, match="group 'nobody' has no members"):
        kafka.expire_session("nobody")


def test_a_full_disk_refuses_until_there_is_room_again(kafka: Kafka) -> None:
    kafka.produce("orders", "one")
    kafka.disk.fill()
    with Producer(kafka.bootstrap_servers, delivery_timeout_ms=300) as producer:
        delivery = producer.send("orders", b"lost")
        with pytest.raises(RetriableError):
            delivery.result()
    assert kafka.disk.refused
    kafka.disk.free()
    with Producer(kafka.bootstrap_servers) as producer:
        producer.send_and_wait("orders", b"two")
    assert values(kafka) == [b"one", b"two"]


def test_a_transaction_times_out_when_the_clock_is_put_forward(
    kafka: Kafka, producer: Producer
) -> None:
    kafka.clock.advance(seconds=61)
    assert kafka.open_transactions == []
    assert [record.outcome for record in kafka.all_records("orders")] == ["aborted"]
    with pytest.raises(SemelError):
        producer.commit_transaction()


def test_silent_members_are_gone_when_the_clock_is_put_forward(kafka: Kafka) -> None:
    kafka.produce("orders", "one")
    with Consumer(kafka.bootstrap_servers, group_id="g", session_timeout_ms=45_000) as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(timeout_ms=10_000)
        kafka.clock.advance(minutes=1)
        with pytest.raises(LookupError, match="no members"):
            kafka.expire_session("g")


def test_the_clock_only_goes_forward_and_survives_a_restart(kafka: Kafka) -> None:
    before = kafka.clock.now_ms()
    kafka.clock.advance(days=2)
    kafka.restart()
    [record] = kafka.produce("orders", "one")
    assert record.timestamp_ms - before >= 2 * 86_400_000
    with pytest.raises(ValueError, match="only be put forward"):
        kafka.clock.advance(seconds=-1)
