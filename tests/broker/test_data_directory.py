"""The data directory: whose it is, which format it has, and what happens to what is not ours."""

import tarfile
from pathlib import Path

import pytest

import semel
from semel.broker.catalog.journal import HEADER, DamagedJournal, packed
from semel.broker.directory import FORMAT, UnknownFormat
from semel.broker.settings.definitions import BadSetting
from semel.broker.start_failures import CannotListen, CannotUseDirectory
from semel.client import Admin, Consumer, Producer, TopicPartition
from semel.wire.checksum import crc32c

#: Written by the last version that put no mark into its directories.
UNMARKED = Path(__file__).parent / "unmarked.tar.gz"


async def start(data: Path, **settings: object) -> None:
    async with semel.Broker(data, settings=settings):
        pass


async def refusal(data: Path) -> str:
    with pytest.raises(UnknownFormat) as refused:
        await start(data)
    text = str(refused.value)
    assert "\n" not in text
    return text


async def test_a_new_directory_is_marked_with_its_format(tmp_path):
    await start(tmp_path / "data")
    mark = (tmp_path / "data" / "semel.format").read_text()
    assert mark == f"{FORMAT}\nwritten by Semel {semel.__version__}\n"


async def test_a_directory_from_before_there_was_a_mark_is_opened_and_marked(tmp_path):
    with tarfile.open(UNMARKED) as archive:
        archive.extractall(tmp_path, filter="data")
    data = tmp_path / "data"
    assert not (data / "semel.format").exists()
    async with semel.Broker(data) as broker:
        places = [TopicPartition("kept", 0), TopicPartition("kept", 1)]
        async with Consumer(
            broker.bootstrap_servers, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign(places)
            values: list[bytes | None] = []
            while len(values) < 2:
                values += [record.value for record in await consumer.poll(1_000)]
        async with Admin(broker.bootstrap_servers) as admin:
            offsets = await admin.group_offsets("readers")
            assert [t.state for t in await admin.list_transactions()] == ["CompleteAbort"]
    assert sorted(values) == [b"one", b"two"]
    assert offsets.keys() == set(places)
    assert (data / "semel.format").read_text().startswith(f"{FORMAT}\n")


async def test_a_directory_of_a_newer_format_is_refused_and_left_as_it_is(tmp_path):
    await start(tmp_path)
    (tmp_path / "semel.format").write_text("2\nwritten by Semel 9.1.0\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    text = await refusal(tmp_path)
    assert f"{tmp_path} has format 2, written by Semel 9.1.0, and" in text
    assert "knows formats up to 1: use a newer Semel, or another directory." in text
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("content", ["", "one\n", "²\n", "-1\n"])
async def test_a_format_that_is_no_number_is_refused(tmp_path, content):
    await start(tmp_path)
    (tmp_path / "semel.format").write_text(content)
    assert "says nothing of its format that can be read" in await refusal(tmp_path)


@pytest.mark.parametrize("name", ["orders-0", "project-2", "x-delete", "meta.properties"])
async def test_what_is_in_a_directory_that_is_not_ours_stays(tmp_path, name):
    """Kafka's directories look like ours, and so do other people's folders: `project-2`."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "precious").write_text("data")
    text = await refusal(tmp_path)
    assert f"{tmp_path} is not empty ({name} is in it) and no data directory of Semel" in text
    assert (tmp_path / name / "precious").read_text() == "data"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("content", [None, b"", b"\0" * 100, b"these are not records"])
async def test_logs_whose_catalog_is_lost_are_not_taken_for_deleted_ones(tmp_path, marked, content):
    async with semel.Broker(tmp_path) as broker:
        broker.catalog.create_topic("t", 1)
    (tmp_path / "metadata.log").unlink()
    if content is not None:
        (tmp_path / "metadata.log").write_bytes(content)
    if not marked:
        (tmp_path / "semel.format").unlink()
    text = await refusal(tmp_path)
    assert ("has lost its metadata.log" if marked else "no data directory of Semel") in text
    assert (tmp_path / "t-0" / "partition.metadata").exists()


async def test_a_broker_that_died_before_its_first_record_leaves_a_directory_to_start_in(tmp_path):
    (tmp_path / "broker.lock").touch()
    (tmp_path / ".lock").touch()
    (tmp_path / "metadata.log").write_bytes(packed([{"is": "cluster"}])[:-3])
    (tmp_path / "lost+found").mkdir()
    await start(tmp_path)


@pytest.mark.parametrize(
    "record",
    [
        {"is": "a kind from the future", "of": 1},
        {"is": "topic", "name": "t"},
        {"is": "deleted topic", "topic": "no id"},
        {},
        "no record at all",
    ],
)
async def test_a_record_of_the_catalog_that_is_not_known_is_named(tmp_path, record):
    await start(tmp_path)
    with (tmp_path / "metadata.log").open("ab") as file:
        file.write(packed([record]))
    with pytest.raises(DamagedJournal) as refused:
        await start(tmp_path)
    assert "metadata.log cannot be read by this version of Semel: its record" in str(refused.value)
    assert str(record) in str(refused.value)


async def test_an_entry_of_the_catalog_that_is_not_json_is_refused(tmp_path):
    await start(tmp_path)
    content = b"\xff\xfe no json"
    with (tmp_path / "metadata.log").open("ab") as file:
        file.write(HEADER.pack(len(content), crc32c(content)) + content)
    with pytest.raises(DamagedJournal, match=r"metadata\.log holds an entry that is not JSON"):
        await start(tmp_path)


async def test_a_file_in_place_of_the_directory_is_named(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for data in (file, file / "below"):
        with pytest.raises(CannotUseDirectory) as refused:
            await start(data)
        assert str(refused.value) == (
            f"Cannot use the data directory {data}: there is a file where a directory should be: "
            f"give another directory (at {data})."
        )


async def test_an_address_of_another_machine_is_told_as_such(tmp_path):
    with pytest.raises(CannotListen, match=r"Cannot listen on 192\.0\.2\.1:0: this machine has no"):
        await semel.Broker(tmp_path, host="192.0.2.1").start()


async def test_a_port_of_metrics_that_is_taken_is_told_as_such(broker, tmp_path):
    with pytest.raises(CannotListen, match=f"Cannot listen on 127.0.0.1:{broker.port}: address al"):
        await start(tmp_path / "other", **{"metrics.port": broker.port})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"listeners": "TLS://:9093"}, "TLS is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "must have a different name"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "must have a different port"),
        ({"listener.security.protocol.map": "A:B"}, "expected NAME:PROTOCOL"),
        ({"advertised.listeners": "SSL://kafka:1"}, "there is no listener SSL in listeners"),
        ({"listeners": "PLAINTEXT://:65536"}, "a port is a number from 0 to 65535"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "clients need a name or address"),
        ({"advertised.listeners": "PLAINTEXT://kafka:0"}, "clients need a name or address"),
        ({"metrics.port": 99999}, "Value must be between -1 and 65535"),
    ],
)
def test_what_is_not_supported_is_refused_before_anything_starts(settings, says):
    with pytest.raises(BadSetting, match=says):
        semel.Broker(settings=settings)


@pytest.mark.parametrize("where", [{"host": "127.0.0.1"}, {"port": 0}])
def test_two_words_on_where_to_listen_are_refused(where):
    with pytest.raises(BadSetting, match="give one of the two"):
        semel.Broker(**where, settings={"listeners": "SSL://:9093"})


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"0\n1\nx\n", b"0\n1\na b c\n"])
@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "t-0/leader-epoch-checkpoint"]
)
async def test_a_damaged_checkpoint_costs_a_recovery_and_no_more(tmp_path, name, content):
    async with semel.Broker(tmp_path) as broker:
        broker.catalog.create_topic("t", 1)
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"kept")
    (tmp_path / name).write_bytes(content)
    async with semel.Broker(tmp_path) as broker:
        assert broker.partitions.find("t", 0).high_watermark == 1


async def test_a_partition_whose_topic_id_is_damaged_is_offline_and_others_are_not(tmp_path):
    async with semel.Broker(tmp_path) as broker:
        broker.catalog.create_topic("t", 2)
    (tmp_path / "t-0" / "partition.metadata").write_bytes(b"damaged")
    async with semel.Broker(tmp_path) as broker:
        assert "no topic id can be read" in str(broker.partitions.find("t", 0).log.offline)
        assert broker.partitions.find("t", 1).log.offline is None


async def test_a_log_that_lost_its_topic_id_is_offline_and_keeps_its_records(tmp_path, caplog):
    """Kafka sets it aside and begins anew at offset 0, where its readers have been already."""
    async with semel.Broker(tmp_path) as broker:
        broker.catalog.create_topic("t", 1)
        async with Producer(broker.bootstrap_servers) as producer:
            await producer.send("t", b"kept")
    metadata = tmp_path / "t-0" / "partition.metadata"
    lost = metadata.read_bytes()
    metadata.unlink()
    async with semel.Broker(tmp_path) as broker:
        assert "partition.metadata" in str(broker.partitions.find("t", 0).log.offline)
    assert "t-0 holds records and has lost its partition.metadata" in caplog.text
    metadata.write_bytes(lost)
    async with semel.Broker(tmp_path) as broker:
        assert broker.partitions.find("t", 0).high_watermark == 1


@pytest.mark.parametrize("name", ["project-2", "x-delete"])
async def test_a_folder_put_beside_the_logs_later_stays(tmp_path, name):
    await start(tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "precious").write_text("data")
    await start(tmp_path)
    assert (tmp_path / name / "precious").read_text() == "data"


async def test_a_log_whose_creation_was_cut_short_is_removed(tmp_path):
    await start(tmp_path)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "partition.metadata.tmp").touch()
    (tmp_path / "t-0" / f"{0:020}.log").touch()
    await start(tmp_path)
    assert not (tmp_path / "t-0").exists()
