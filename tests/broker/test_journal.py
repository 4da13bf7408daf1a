"""The journal: what was appended is read again, whatever a crash did to the end of the file."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.broker.catalog.journal import DamagedJournal, Journal, packed, read

RECORDS = [{"is": "topic", "name": "é", "n": 1}, {"is": "start"}, {"is": "x", "y": [1, None]}]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metadata.log"


def opened(path):
    journal = Journal(path)
    records, torn = journal.open()
    return journal, records, torn


def test_records_come_back_in_order(path):
    journal, records, torn = opened(path)
    assert (records, torn) == ([], 0)
    journal.append(RECORDS[:1])
    journal.append(RECORDS[1:])
    journal.close()
    assert opened(path)[1:] == (RECORDS, 0)


@pytest.mark.parametrize("cut", range(1, len(packed(RECORDS[1:]))))
def test_a_torn_append_is_cut_off_and_the_journal_goes_on(path, cut):
    path.write_bytes(packed(RECORDS[:1]) + packed(RECORDS[1:])[:cut])
    journal, records, torn = opened(path)
    assert (records, torn) == (RECORDS[:1], cut)
    journal.append(RECORDS[2:])
    journal.close()
    assert opened(path)[1:] == ([RECORDS[0], RECORDS[2]], 0)


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff" * 100, b"garbage"])
def test_a_tail_that_was_never_written_out_is_cut_off(path, tail):
    path.write_bytes(packed(RECORDS) + tail)
    assert opened(path)[1:] == (RECORDS, len(tail))


def test_damage_before_good_entries_is_refused_not_repaired(path):
    content = bytearray(packed(RECORDS[:1]) + packed(RECORDS[1:]))
    content[10] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedJournal, match=r"damaged at byte 0, but goes on at byte \d+"):
        Journal(path).open()
    assert path.read_bytes() == content


def test_replacing_leaves_only_the_new_records(path):
    journal, _, _ = opened(path)
    journal.append(RECORDS)
    journal.replace(RECORDS[:1])
    journal.append(RECORDS[2:])
    journal.close()
    assert opened(path)[1:] == ([RECORDS[0], RECORDS[2]], 0)
    assert os.listdir(path.parent) == ["metadata.log"]


def test_a_crash_while_replacing_leaves_the_old_records(path):
    journal, _, _ = opened(path)
    journal.append(RECORDS)
    journal.close()
    path.with_suffix(".new").write_bytes(packed(RECORDS[:1])[:5])
    journal, records, _ = opened(path)
    assert records == RECORDS
    journal.replace(RECORDS[:1])
    journal.close()
    assert opened(path)[1] == RECORDS[:1]


def test_a_failed_append_leaves_the_file_as_it_was(path, monkeypatch):
    journal, _, _ = opened(path)
    journal.append(RECORDS[:1])

    def full_disk(file, content):
        real_write(file, content[:3])
        raise OSError(28, "No space left on device")

    real_write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk)
        with pytest.raises(OSError, match="No space left"):
            journal.append(RECORDS[1:])
    journal.append(RECORDS[2:])
    journal.close()
    assert opened(path)[1:] == ([RECORDS[0], RECORDS[2]], 0)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_crash(content):
    records, end = read(content)
    assert 0 <= end <= len(content)
    assert isinstance(records, list)
