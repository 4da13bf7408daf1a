"""The transaction APIs over the wire, answer by answer."""

import pytest

from semel.core.placing import partition_of
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from semel.wire.messages.describe_transactions import DescribeTransactionsRequest
from semel.wire.messages.find_coordinator import FindCoordinatorRequest
from semel.wire.messages.list_transactions import ListTransactionsRequest
from semel.wire.messages.write_txn_markers import WriteTxnMarkersRequest


class TestFindCoordinator:
    async def test_the_first_question_makes_the_topic_and_is_answered(self, broker, peer):
        assert "__transaction_state" not in broker.catalog.topics
        found = await peer.find()
        assert (found.error_code, found.node_id, found.port) == (0, 1, broker.port)
        topic = broker.catalog.topics["__transaction_state"]
        assert topic.partition_count == 50
        assert topic.config["cleanup.policy"] == ("compact",)
        assert topic.config["segment.bytes"] == 100 * 1024 * 1024

    @pytest.mark.parametrize("version", [0, 1, 2, 3])
    async def test_older_versions_answer_one_key(self, broker, peer, version):
        answer = await peer.ask(FindCoordinatorRequest(key="g"), version)
        assert (answer.error_code, answer.port) == (0, broker.port)

    async def test_several_keys_and_groups(self, broker, peer):
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "b"])
        answer = await peer.ask(request, 6)
        assert [found.key for found in answer.coordinators] == ["a", "b"]
        assert "__consumer_offsets" in broker.catalog.topics

    async def test_a_strange_type_is_no_request_and_an_empty_id_has_a_coordinator(self, peer):
        for key_type, key, error in ((1, "", E.NONE), (9, "a", E.INVALID_REQUEST)):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            answer = await peer.ask(request, 4)
            assert answer.coordinators[0].error_code == error


class TestOneTransaction:
    @pytest.mark.parametrize("versions", [(0, 0, 3, 0), (4, 3, 10, 3)])
    async def test_version_1_commits(self, peer, versions):
        init, add, produce, end = versions
        assert (await peer.init(version=init)).error_code == 0
        assert await peer.add(version=add) == [0]
        assert (await peer.produce(b"one", version=produce)).error_code == 0
        assert await peer.read() == []
        assert (await peer.end(True, version=end)).error_code == 0
        assert await peer.read() == [b"one"]

    async def test_version_2_commits_without_adding_and_gets_a_new_epoch(self, ready):
        assert (await ready.produce(b"one", version=12)).error_code == 0
        answer = await ready.end(True, version=5)
        assert (answer.error_code, answer.producer_epoch) == (0, 1)
        assert (await ready.produce(b"two", version=12)).error_code == 0
        await ready.end(False, version=5)
        assert await ready.read() == [b"one"]
        assert await ready.read(isolation=0) == [b"one", b"two"]

    async def test_an_aborted_one_is_read_by_nobody_who_asks_for_committed_data(self, ready):
        await ready.add()
        await ready.produce(b"one")
        assert (await ready.end(False)).error_code == 0
        assert await ready.read() == []
        await ready.add()
        await ready.produce(b"two")
        await ready.end(True)
        assert await ready.read() == [b"two"]

    async def test_when_it_is_answered_its_markers_are_there_and_the_next_can_begin(self, ready):
        for number in range(50):
            assert await ready.add() == [0]
            assert (await ready.produce(b"%d" % number)).error_code == 0
            assert (await ready.end(True)).error_code == 0
        assert len(await ready.read()) == 50


class TestNothingEntersAfterTheEnd:
    @pytest.mark.parametrize("commit", [True, False])
    async def test_nor_while_the_markers_are_on_their_way_to_the_device(
        self, start_broker, new_peer, commit
    ):
        broker = await start_broker(durability="fsync")
        peer = await new_peer(broker)
        await peer.create_topic()
        await peer.init()
        await peer.add()
        await peer.produce(b"one")
        assert (await peer.end(commit)).error_code == 0
        assert (await peer.produce(b"late")).error_code in (
            E.INVALID_TXN_STATE,
            E.NOT_ENOUGH_REPLICAS,  # how Produce says that the transaction is still ending
        )
        assert await peer.read(isolation=0) == [b"one"]

    async def test_a_record_after_endtxn_was_answered_is_refused_under_version_1(self, ready):
        await ready.add()
        await ready.produce(b"one")
        await ready.end(True)
        assert (await ready.produce(b"late")).error_code == E.INVALID_TXN_STATE
        assert await ready.read(isolation=0) == [b"one"]

    async def test_a_record_of_the_old_epoch_is_refused_under_version_2(self, ready):
        await ready.produce(b"one", version=12)
        epoch = ready.epoch
        await ready.end(True, version=5)
        ready.epoch = epoch
        assert (await ready.produce(b"late", version=12)).error_code == E.INVALID_PRODUCER_EPOCH


class TestVerification:
    async def test_a_partition_that_was_not_added_is_refused_by_version(self, ready):
        assert (await ready.produce(version=10)).error_code == E.INVALID_TXN_STATE
        assert (await ready.produce(version=11)).error_code == E.TRANSACTION_ABORTABLE

    async def test_switched_off_a_partition_of_version_1_is_taken_on_trust(self, broker, ready):
        broker.settings.change({"transaction.partition.verification.enable": "false"}, {})
        assert (await ready.produce(b"trusted", version=10)).error_code == 0
        ready.epoch += 1
        assert (await ready.produce(version=12)).error_code == E.INVALID_PRODUCER_EPOCH

    async def test_a_batch_whose_question_is_still_open_is_not_overtaken(self, broker, ready):
        await ready.add()
        state = broker.partitions.find("t", 0).state
        state.verifications.ask(ready.producer_id, ready.epoch, 0, False, broker.now_ms())
        ready.sequences["t", 0] = 1
        answer = await ready.produce(b"two")
        assert answer.error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        ready.sequences["t", 0] = 0
        assert (await ready.produce(b"one")).error_code == 0
        assert (await ready.produce(b"two")).error_code == 0
        assert state.verifications == {}

    async def test_a_zombie_hears_47_never_90(self, peer, ready):
        old = ready.epoch
        await ready.init()
        ready.epoch = old
        assert (await ready.produce(version=10)).error_code == E.INVALID_PRODUCER_EPOCH
        assert (await ready.produce(version=12)).error_code == E.INVALID_PRODUCER_EPOCH

    async def test_an_unknown_producer_hears_that_the_mapping_is_wrong(self, ready):
        ready.producer_id = 12345
        assert (await ready.produce(version=10)).error_code == E.INVALID_PRODUCER_ID_MAPPING


class TestInitProducerId:
    async def test_over_an_open_transaction_the_newcomer_waits_inside_its_request(
        self, broker, ready, new_peer
    ):
        await ready.add()
        await ready.produce(b"lost")
        newcomer = await new_peer(broker)
        answer = await newcomer.init()
        assert (answer.error_code, answer.producer_epoch) == (0, 2)
        assert (await ready.end(True, version=1)).error_code == E.INVALID_PRODUCER_EPOCH
        assert (await ready.end(True, version=2)).error_code == E.PRODUCER_FENCED
        assert await newcomer.read() == []

    async def test_without_patience_it_hears_51_first_as_from_kafka(self, start_broker, new_peer):
        broker = await start_broker(add_partitions_to_txn_retry_backoff_max_ms=0)
        peer = await new_peer(broker)
        await peer.create_topic()
        await peer.init()
        await peer.add()
        newcomer = await new_peer(broker)
        assert (await newcomer.init()).error_code == E.CONCURRENT_TRANSACTIONS
        assert (await newcomer.init()).producer_epoch == 2

    async def test_fencing_is_told_by_version(self, ready):
        await ready.init()
        for version, error in ((3, E.INVALID_PRODUCER_EPOCH), (4, E.PRODUCER_FENCED)):
            answer = await ready.init(ready.producer_id, 0, version=version)
            assert answer.error_code == error

    async def test_refusals(self, ready):
        answer = await ready.init(timeout_ms=900_001)
        assert answer.error_code == E.INVALID_TRANSACTION_TIMEOUT
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
        assert (await ready.init(ready.producer_id, -1)).error_code == E.INVALID_REQUEST

    async def test_ids_of_two_transactional_ids_differ(self, broker, ready, new_peer):
        other = await new_peer(broker, "other")
        await other.init()
        assert other.producer_id != ready.producer_id


class TestAddPartitions:
    async def test_all_or_nothing(self, ready):
        assert await ready.add("t", 0, 7) == [
            E.OPERATION_NOT_ATTEMPTED,
            E.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert (await ready.end(True)).error_code == E.INVALID_TXN_STATE

    async def test_internal_topics_are_not_for_clients(self, ready):
        assert await ready.add("__transaction_state", 0) == [E.TOPIC_AUTHORIZATION_FAILED]

    async def test_fencing_is_told_by_version(self, ready):
        ready.epoch = 9
        assert await ready.add(version=1) == [E.INVALID_PRODUCER_EPOCH]
        assert await ready.add(version=2) == [E.PRODUCER_FENCED]

    async def test_brokers_ask_for_several_at_once_and_verify(self, ready):
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])

        def one(name, verify):
            return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=ready.producer_id,
                producer_epoch=0,
                verify_only=verify,
                topics=[topic],
            )

        async def ask(*transactions):
            request = AddPartitionsToTxnRequest(transactions=list(transactions))
            answer = await ready.ask(request, 5)
            return [
                result.topic_results[0].results_by_partition[0].partition_error_code
                for result in answer.results_by_transaction
            ]

        assert await ask(one("etl", True)) == [E.TRANSACTION_ABORTABLE]
        unknown = E.INVALID_PRODUCER_ID_MAPPING
        assert await ask(one("etl", False), one("who?", False)) == [0, unknown]
        assert await ask(one("etl", True), one("who?", True)) == [0, unknown]


async def test_offsets_of_a_group_join_as_a_partition_of_the_offsets_topic(broker, ready):
    assert await ready.add_offsets("readers") == 0
    [state] = (
        await ready.ask(DescribeTransactionsRequest(transactional_ids=["etl"]), 0)
    ).transaction_states
    home = partition_of("readers", 50)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [
        ("__consumer_offsets", [home])
    ]
    assert (await ready.end(True)).error_code == 0


class TestWriteTxnMarkers:
    async def write(self, peer, commit, epoch, coordinator_epoch=0, topic="t", version=2):
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=peer.producer_id,
            producer_epoch=epoch,
            transaction_result=commit,
            topics=[
                WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])
            ],
            coordinator_epoch=coordinator_epoch,
        )
        answer = await peer.ask(WriteTxnMarkersRequest(markers=[marker]), version)
        return answer.markers[0].topics[0].partitions[0].error_code

    async def test_an_operator_aborts_a_hanging_transaction(self, broker, ready):
        await ready.add()
        await ready.produce(b"hangs")
        assert await self.write(ready, commit=False, epoch=0, version=1) == 0
        partition = broker.partitions.find("t", 0)
        assert partition.last_stable_offset == partition.high_watermark
        assert await ready.read() == []
        why = broker.transactions.timeline.why(ready.producer_id, 0)
        assert why == "aborted by an operator (client tester from 127.0.0.1)"

    async def test_a_stale_coordinator_is_fenced(self, ready):
        await ready.add()
        await ready.produce()
        assert await self.write(ready, commit=False, epoch=0, coordinator_epoch=5) == 0
        error = await self.write(ready, commit=False, epoch=0, coordinator_epoch=4)
        assert error == E.TRANSACTION_COORDINATOR_FENCED

    async def test_an_unknown_partition_is_named_as_such(self, ready):
        error = await self.write(ready, commit=True, epoch=0, topic="nowhere")
        assert error == E.UNKNOWN_TOPIC_OR_PARTITION

    async def test_nobodys_marker_is_not_written(self, broker, ready):
        assert await self.write(ready, commit=False, epoch=-1) == E.INVALID_PRODUCER_EPOCH
        ready.producer_id = -1
        assert await self.write(ready, commit=False, epoch=0) == E.INVALID_PRODUCER_ID_MAPPING
        assert broker.partitions.find("t", 0).log.next_offset == 0

    async def test_a_transaction_that_cannot_end_names_the_partitions_without_a_marker(self, ready):
        await ready.create_topic("other")
        await ready.add("other")
        await ready.add()
        await ready.produce()
        assert await self.write(ready, commit=False, epoch=0, coordinator_epoch=5) == 0
        await ready.end(True)
        request = DescribeTransactionsRequest(transactional_ids=["etl"])
        [found] = (await ready.ask(request, 0)).transaction_states
        assert found.transaction_state == "PrepareCommit"
        assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0])]


class TestSeeing:
    async def test_listing_by_state_and_unknown_filters(self, ready):
        await ready.add()
        answer = await ready.ask(ListTransactionsRequest(state_filters=["Ongoing", "Odd"]), 2)
        assert answer.unknown_state_filters == ["Odd"]
        [found] = answer.transaction_states
        assert (found.transactional_id, found.transaction_state) == ("etl", "Ongoing")

    async def test_listing_with_a_broken_pattern(self, ready):
        answer = await ready.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert answer.error_code == E.INVALID_REGULAR_EXPRESSION

    async def test_describing_several(self, ready):
        await ready.add()
        request = DescribeTransactionsRequest(transactional_ids=["etl", "who?", ""])
        states = (await ready.ask(request, 0)).transaction_states
        assert [state.error_code for state in states] == [
            0,
            E.TRANSACTIONAL_ID_NOT_FOUND,
            E.INVALID_REQUEST,
        ]
        assert states[0].transaction_state == "Ongoing"
        assert states[0].transaction_timeout_ms == 60_000
        assert (states[0].topics[0].topic, states[0].topics[0].partitions) == ("t", [0])


async def test_a_fenced_producer_hears_the_cause_from_its_coordinator_in_a_tag_of_ours(
    broker, ready, new_peer
):
    await ready.add()
    await (await new_peer(broker)).init()
    cause = "taken over by client tester from 127.0.0.1"
    assert (await ready.end(True, version=3)).cause == cause
    assert (await ready.end(True, version=2)).cause == ""
    assert (await ready.init(ready.producer_id, ready.epoch)).cause == cause
