"""The catalog: durable topics, ids, epochs and producer ids, replayed to the same state."""

import subprocess
import sys
import uuid

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from semel.broker.catalog import catalog as catalogs
from semel.broker.catalog.catalog import Catalog
from semel.broker.catalog.journal import read
from semel.broker.settings.definitions import BadSetting
from semel.broker.settings.settings import Settings


def opened(directory, **settings):
    catalog = Catalog(directory, Settings({k.replace("_", "."): v for k, v in settings.items()}))
    catalog.open()
    return catalog


def state(catalog):
    """Everything that must survive a restart, but for what every start changes."""
    topics = {
        name: (topic.id, topic.partition_count, topic.config.own)
        for name, topic in catalog.topics.items()
    }
    return (
        catalog.cluster_id,
        topics,
        catalog.features,
        catalog.configs,
        catalog.next_producer_id,
    )


@pytest.fixture
def directory(tmp_path):
    return tmp_path


@pytest.fixture
def catalog(directory):
    catalog = opened(directory)
    yield catalog
    catalog.close()


def test_a_new_cluster_has_an_id_and_the_features_of_transaction_version_2(catalog):
    assert len(catalog.cluster_id) == 22
    assert catalog.features == {
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "metadata.version": 30,
        "transaction.version": 2,
    }


def test_everything_survives_a_restart(directory, catalog):
    kept = catalog.create_topic("kept", 3, {"retention.ms": "5"})
    catalog.create_topic("gone", 1)
    catalog.delete_topic("gone")
    catalog.add_partitions(kept, 5)
    catalog.configure_topic(kept, {"cleanup.policy": "compact"})
    catalog.configure(catalogs.BROKER, "", {"log.retention.ms": "77"})
    catalog.configure(catalogs.GROUP, "g", {"consumer.session.timeout.ms": "50000"})
    catalog.set_features({"transaction.version": 1})
    catalog.allocate_producer_ids()
    before = state(catalog)
    catalog.close()
    again = opened(directory)
    assert state(again) == before
    assert again.topics["kept"].config["cleanup.policy"] == ("compact",)
    assert again.topics["kept"].config["retention.ms"] == 77
    assert again.topics_by_id == {kept.id: again.topics["kept"]}
    again.close()


def test_a_topic_made_again_has_another_id(catalog):
    first = catalog.create_topic("t", 1).id
    catalog.delete_topic("t")
    assert catalog.create_topic("t", 1).id != first


def test_topic_ids_never_begin_with_a_dash():
    assert not any(catalogs.id_text(catalogs.new_topic_id()).startswith("-") for _ in range(500))


def test_every_start_is_a_new_broker_epoch_and_a_new_leadership(directory, catalog):
    catalog.create_topic("t", 2)
    assert catalog.broker_epoch == 1
    assert catalog.topics["t"].leader_epochs == [0, 0]
    assert catalog.bump_leader_epoch(catalog.topics["t"], 1) == 1
    catalog.close()
    again = opened(directory)
    assert again.broker_epoch == 2
    assert again.topics["t"].leader_epochs == [1, 2]
    again.close()


def test_producer_ids_come_in_blocks_of_a_thousand_and_never_twice(directory, catalog):
    assert catalog.allocate_producer_ids() == range(0, 1000)
    assert catalog.allocate_producer_ids() == range(1000, 2000)
    catalog.close()
    again = opened(directory)
    assert again.allocate_producer_ids() == range(2000, 3000)
    again.close()


def test_a_rewritten_journal_holds_the_same_state_in_less_room(directory, catalog, monkeypatch):
    monkeypatch.setattr(catalogs, "SMALLEST_REWRITE", 4096)
    for number in range(200):
        catalog.create_topic("temporary", 3)
        catalog.delete_topic("temporary")
        if number % 50 == 0:
            catalog.create_topic(f"kept-{number}", 2, {"retention.ms": str(number)})
    catalog.allocate_producer_ids()
    before, offset = state(catalog), catalog.offset
    size = (directory / "metadata.log").stat().st_size
    catalog.close()
    assert size < 8192
    again = opened(directory)
    assert state(again) == before
    assert again.offset == offset + 1  # the new start
    assert again.topics["kept-0"].leader_epochs == [1, 1]
    again.close()


def test_listeners_hear_of_changes_after_they_are_durable(directory, catalog):
    heard = []

    class Ear:
        def topic_created(self, topic):
            heard.append(("created", topic.name, durable(topic)))

        def partitions_added(self, topic, first):
            heard.append(("grown", topic.name, first, topic.partition_count))

        def topic_deleted(self, topic):
            heard.append(("deleted", topic.name, topic.name in catalog.topics))

        def topic_configured(self, topic):
            heard.append(("configured", topic.name, topic.config["retention.ms"]))

    def durable(topic):
        records, _ = read((directory / "metadata.log").read_bytes())
        return any(record.get("id") == str(topic.id) for record in records)

    catalog.listeners.append(Ear())
    topic = catalog.create_topic("t", 1)
    catalog.add_partitions(topic, 4)
    catalog.configure_topic(topic, {"retention.ms": "3"})
    catalog.configure(catalogs.BROKER, "1", {"log.retention.ms": "4"})
    catalog.delete_topic("t")
    assert heard == [
        ("created", "t", True),
        ("grown", "t", 1, 4),
        ("configured", "t", 3),
        ("configured", "t", 3),
        ("deleted", "t", False),
    ]


def test_a_torn_tail_is_repaired_and_told(directory, catalog, caplog):
    catalog.create_topic("whole", 1)
    catalog.close()
    with (directory / "metadata.log").open("ab") as file:
        file.write(b"\0\0\0\x40half a record")
    again = opened(directory)
    assert list(again.topics) == ["whole"]
    assert [record.message for record in caplog.records] == ["cut off a torn write"]
    again.close()


def test_data_of_another_node_is_refused(directory, catalog):
    catalog.close()
    with pytest.raises(BadSetting, match="this data directory belongs to node 1"):
        opened(directory, node_id=2)


# Any history, cut anywhere, replays to what it was at the cut.

CHANGES = st.lists(
    st.sampled_from(["create", "delete", "grow", "configure", "ids", "epoch", "restart"]),
    max_size=25,
)


@hypothesis_settings(deadline=None)  # it syncs to a disk
@given(CHANGES)
def test_any_history_replays_to_the_same_state(changes):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        catalog = opened(directory)
        for number, change in enumerate(changes):
            catalog = _change(directory, catalog, change, number)
        before = state(catalog)
        epochs = {name: list(topic.leader_epochs) for name, topic in catalog.topics.items()}
        catalog.close()
        again = opened(directory)
        assert state(again) == before
        assert {name: list(topic.leader_epochs) for name, topic in again.topics.items()} == {
            name: [epoch + 1 for epoch in old] for name, old in epochs.items()
        }
        again.close()


def _change(directory, catalog, change, number):
    some = next(iter(catalog.topics.values()), None)
    if change == "create":
        catalog.create_topic(f"t{number}", 1 + number % 3)
    elif change == "ids":
        catalog.allocate_producer_ids()
    elif change == "restart":
        catalog.close()
        return opened(directory)
    elif some is None:
        pass
    elif change == "delete":
        catalog.delete_topic(some.name)
    elif change == "grow":
        catalog.add_partitions(some, some.partition_count + 1)
    elif change == "configure":
        catalog.configure_topic(some, {"retention.ms": str(number)})
    elif change == "epoch":
        catalog.bump_leader_epoch(some, 0)
    return catalog


WRITER = """
import sys
from pathlib import Path
from semel.broker.catalog.catalog import Catalog
from semel.broker.settings.settings import Settings

catalog = Catalog(Path(sys.argv[1]), Settings())
catalog.open()
number = 0
while True:
    topic = catalog.create_topic(f"t{catalog.broker_epoch}-{number}", 1)
    ids = catalog.allocate_producer_ids()
    print(topic.name, topic.id, ids.start, flush=True)
    number += 1
"""


def test_what_was_acknowledged_survives_kill_9(directory):
    """Three lives, each ended in the middle of writing: no topic is lost, no block given twice."""
    told = []
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, str(directory)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            told += [writer.stdout.readline().split() for _ in range(5)]
            writer.kill()
            told += [
                line.split()
                for line in writer.stdout.read().splitlines(keepends=True)
                if line.endswith("\n")
            ]
    catalog = opened(directory)
    for name, topic_id, _ in told:
        assert catalog.topics[name].id == uuid.UUID(topic_id)
    starts = [int(start) for _, _, start in told]
    assert len(set(starts)) == len(starts)
    assert catalog.allocate_producer_ids().start > max(starts)
    catalog.close()
