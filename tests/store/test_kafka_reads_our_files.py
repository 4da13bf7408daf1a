"""Kafka's own DumpLogSegments reads logs, indexes and transaction indexes, also compacted ones."""

import re
from uuid import uuid4

import pytest
from tests.support.brokers.apache_kafka import kafka_tool
from tests.support.transactional_log import TransactionalLog

from semel.store.directory import DiskStore
from semel.store.interface import LogConfig

pytestmark = pytest.mark.interop

CONFIG = LogConfig(
    segment_bytes=4_000, index_interval_bytes=200, compact=True, file_delete_delay_ms=0
)
PROBLEMS = ("mismatch", "not found", "out of order", "isvalid: false", "exception", "invalid")


@pytest.fixture(params=["written", "compacted"])
def log_directory(request, tmp_path):
    store = DiskStore(tmp_path)
    world = TransactionalLog(store.create("t", 0, uuid4(), CONFIG))
    for number in range(150):
        producer_id = number % 3
        value = None if number % 11 == 0 else b"v%d" % number
        world.write([(b"key %d" % (number % 40), value)], producer_id, transactional=True)
        world.end(producer_id, commit=number % 4 != 0)
    if request.param == "compacted":
        world.compact()
        world.compact(world.now_ms + 10**9)
    assert world.aborted
    store.close()
    return tmp_path / "t-0"


def dump(directory, ending, *options):
    files = ",".join(str(path) for path in sorted(directory.glob(f"*.{ending}")))
    result = kafka_tool("org.apache.kafka.tools.DumpLogSegments", *options, "--files", files)
    output = result.stdout + result.stderr
    for problem in PROBLEMS:
        assert problem not in output.lower(), output
    return output


def test_kafka_reads_every_record(log_directory):
    output = dump(log_directory, "log", "--deep-iteration", "--print-data-log")
    offsets = [int(found) for found in re.findall(r"\| offset: (\d+)", output)]
    assert offsets == sorted(set(offsets))
    assert "endTxnMarker: COMMIT" in output
    assert "key: key 39 payload: v" in output


def test_kafka_finds_the_indexes_right(log_directory):
    assert "position: " in dump(log_directory, "index")
    assert "timestamp: " in dump(log_directory, "timeindex")
    dump(log_directory, "index", "--index-sanity-check")
    dump(log_directory, "timeindex", "--index-sanity-check")


def test_kafka_reads_the_aborted_transactions(log_directory):
    assert "producerId: " in dump(log_directory, "txnindex")
