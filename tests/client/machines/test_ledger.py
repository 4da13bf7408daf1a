"""The ledger's format, and its search over a log that answers like a broker."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.client.machines import ledger
from semel.client.machines.ledger import (
    LedgerEntry,
    LedgerRefusal,
    Search,
    Unstable,
    all_entries,
    check_policy,
    last_entry,
    partition_of,
)
from semel.wire.batches import BatchBuilder, BatchHeader, control_batch, headers
from semel.wire.messages.fetch import FetchRequest, FetchResponse
from semel.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

TOPIC = "semel-ledger"
LATEST, EARLIEST = -1, -2


class Log:
    """One partition: batches of transactions, each with a producer of its own."""

    def __init__(self, fetch_batches: int = 100) -> None:
        self.batches: list[BatchHeader] = []
        self.start = 0
        self.open: dict[int, int] = {}  # producer → first offset
        self.aborted: list[tuple[int, int]] = []
        self.fetch_batches = fetch_batches
        self.fetches: list[int] = []

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    @property
    def stable(self) -> int:
        return min(self.open.values(), default=self.end)

    def write(self, producer_id: int, *records: tuple[bytes | None, bytes | None]) -> None:
        builder = BatchBuilder()
        for key, value in records:
            builder.append(key, value, 1)
        self.open.setdefault(producer_id, self.end)
        self._add(
            builder.build(
                producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True,
                base_offset=self.end,
            )
        )  # fmt: skip

    def finish(self, producer_id: int, commit: bool) -> None:
        first = self.open.pop(producer_id)
        if not commit:
            self.aborted.append((producer_id, first))
        self._add(
            control_batch(
                producer_id=producer_id, producer_epoch=0, commit=commit, coordinator_epoch=0,
                timestamp=1, base_offset=self.end,
            )
        )  # fmt: skip

    def commit(self, *entries: LedgerEntry) -> None:
        producer_id = self.end + 1000
        self.write(producer_id, *((entry.key, entry.encode()) for entry in entries))
        self.finish(producer_id, commit=True)

    def _add(self, batch: bytearray) -> None:
        self.batches += headers(bytes(batch))

    def answer(self, request: Any) -> Any:
        if isinstance(request, ListOffsetsRequest):
            return self._offset(request)
        assert isinstance(request, FetchRequest)
        return self._records(request)

    def _offset(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        timestamp = request.topics[0].partitions[0].timestamp
        latest = self.stable if request.isolation_level else self.end
        part = ListOffsetsResponse.ListOffsetsPartitionResponse(
            offset=self.start if timestamp == EARLIEST else latest
        )
        topic = ListOffsetsResponse.ListOffsetsTopicResponse(name=TOPIC, partitions=[part])
        return ListOffsetsResponse(topics=[topic])

    def _records(self, request: FetchRequest) -> FetchResponse:
        assert request.isolation_level == 1
        offset = request.topics[0].partitions[0].fetch_offset
        self.fetches.append(offset)
        found = [b for b in self.batches if offset < b.next_offset <= self.stable]
        aborted = [
            FetchResponse.AbortedTransaction(producer_id=producer, first_offset=first)
            for producer, first in self.aborted
        ]
        part = FetchResponse.PartitionData(
            aborted_transactions=aborted,
            records=b"".join(bytes(b.view) for b in found[: self.fetch_batches]),
        )
        topic = FetchResponse.FetchableTopicResponse(topic=TOPIC, partitions=[part])
        return FetchResponse(responses=[topic])


def run(search: Search[Any], log: Log, waiting: Any = None) -> Any:
    try:
        question = next(search)
        while True:
            if isinstance(question, Unstable):
                assert waiting is not None, "nothing was open"
                waiting(question)
                question = next(search)
            else:
                question = search.send(partition_of(log.answer(question)))
    except StopIteration as done:
        return done.value


def entry(application: str, number: int) -> LedgerEntry:
    return LedgerEntry(application, number, {"at": number})


# The format


def test_an_entry_is_json_with_a_version() -> None:
    written = LedgerEntry("billing", 7, {"file": "a.csv"})
    assert written.key == b"billing"
    assert json.loads(written.encode()) == {
        "version": 1,
        "writer": "client",
        "number": 7,
        "note": {"file": "a.csv"},
    }
    assert LedgerEntry.decode("billing", written.encode()) == written


def test_an_entry_of_a_later_version_asks_for_an_upgrade() -> None:
    with pytest.raises(LedgerRefusal, match="version 2: upgrade semel"):
        LedgerEntry.decode("billing", b'{"version": 2, "batch": {}}')


NOT_ENTRIES = [b"", b"null", b"7", b"[]", b"{}", b'{"number": 3}', b'{"version": 1}', b"\xff"]


@pytest.mark.parametrize("value", NOT_ENTRIES)
def test_what_another_program_wrote_under_our_name_is_refused(value: bytes) -> None:
    log = Log()
    log.commit(entry("billing", 1))
    log.write(7, (b"billing", value))
    log.finish(7, commit=True)
    with pytest.raises(LedgerRefusal, match="not an entry under 'billing'"):
        run(last_entry(TOPIC, "billing"), log)
    assert run(all_entries(TOPIC), log) == {}


def test_a_name_belongs_to_one_kind_of_writer() -> None:
    entry("billing", 1).check_writer("client")
    with pytest.raises(LedgerRefusal, match="'billing' is in the ledger by client, not by spark"):
        entry("billing", 1).check_writer("spark")


@pytest.mark.parametrize("policy", ["compact", "compact,delete", None])
def test_a_compacted_topic_holds_a_ledger(policy: str | None) -> None:
    check_policy(TOPIC, policy)


def test_a_topic_that_forgets_holds_none() -> None:
    with pytest.raises(LedgerRefusal, match="must be compacted"):
        check_policy(TOPIC, "delete")


# The search


def test_nothing_is_found_in_an_empty_log() -> None:
    assert run(last_entry(TOPIC, "billing"), Log()) is None
    assert run(all_entries(TOPIC), Log()) == {}


def test_the_last_commit_of_each_application_counts() -> None:
    log = Log()
    log.commit(entry("billing", 1), entry("mail", 5))
    log.commit(entry("billing", 2))
    assert run(last_entry(TOPIC, "billing"), log) == entry("billing", 2)
    assert run(last_entry(TOPIC, "mail"), log) == entry("mail", 5)
    assert run(last_entry(TOPIC, "bill"), log) is None
    assert run(all_entries(TOPIC), log) == {
        "billing": entry("billing", 2),
        "mail": entry("mail", 5),
    }


def test_an_aborted_entry_does_not_count_even_where_a_fetch_ends_with_it() -> None:
    log = Log(fetch_batches=1)
    log.commit(entry("billing", 1))
    log.write(7, (b"billing", entry("billing", 2).encode()))
    log.write(7, (b"billing", entry("billing", 3).encode()))
    log.finish(7, commit=False)
    log.commit(entry("mail", 1))
    assert run(last_entry(TOPIC, "billing"), log) == entry("billing", 1)
    assert run(last_entry(TOPIC, "mail"), log) == entry("mail", 1)
    assert run(all_entries(TOPIC), log) == {
        "billing": entry("billing", 1),
        "mail": entry("mail", 1),
    }


def test_an_application_that_was_removed_is_unknown() -> None:
    log = Log()
    log.commit(entry("billing", 1))
    log.write(7, (b"billing", None))
    log.finish(7, commit=True)
    assert run(last_entry(TOPIC, "billing"), log) is None
    assert run(all_entries(TOPIC), log) == {}


def test_what_an_open_transaction_hides_is_waited_for() -> None:
    log = Log()
    log.write(7, (b"mail", entry("mail", 1).encode()))
    log.commit(entry("billing", 1))
    waits: list[Unstable] = []

    def wait(unstable: Unstable) -> None:
        waits.append(unstable)
        if len(waits) == 3:
            log.finish(7, commit=False)

    assert run(last_entry(TOPIC, "billing"), log, wait) == entry("billing", 1)
    assert waits == [Unstable(0, 3)] * 3


def test_an_entry_near_the_end_is_found_without_reading_the_rest() -> None:
    log = Log()
    for number in range(3 * ledger._FIRST_LOOK):
        log.commit(entry("mail", number))
    log.commit(entry("billing", 1))
    assert run(last_entry(TOPIC, "billing"), log) == entry("billing", 1)
    assert min(log.fetches) == log.end - ledger._FIRST_LOOK


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.tuples(st.booleans(), st.lists(st.tuples(NAMES, st.integers(0, 99)), min_size=1))


@given(st.lists(STEPS, max_size=30), st.integers(1, 4), st.integers(1, 9), st.integers(0, 20))
def test_both_searches_find_what_replaying_the_commits_would(
    steps: list[tuple[bool, list[tuple[str, int]]]], fetch: int, first_look: int, start: int
) -> None:
    log, expected = Log(fetch), {}
    for producer_id, (commit, numbers) in enumerate(steps):
        written = [entry(*given) for given in numbers]
        kept = [e for place, e in enumerate(written) if log.end + place >= start]
        log.write(producer_id, *((e.key, e.encode()) for e in written))
        log.finish(producer_id, commit)
        expected |= {e.application: e for e in kept if commit}
    log.start = min(start, log.end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "_FIRST_LOOK", first_look)
        found = {name: run(last_entry(TOPIC, name), log) for name in "abc"}
    assert {name: e for name, e in found.items() if e is not None} == expected
    assert run(all_entries(TOPIC), log) == expected
