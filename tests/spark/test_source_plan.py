"""How the source divides its work: plain values in, plain values out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.errors import UsageError
from semel.spark.source.offsets import Range, limit_to, pack, ranges
from semel.spark.source.options import SourceOptions
from semel.spark.source.source import StreamReader, Work

sizes = st.dictionaries(st.integers(0, 9), st.integers(0, 50_000), min_size=1)


@given(sizes, st.integers(1, 100_000))
def test_a_limit_is_kept_and_something_always_moves(found, allowed):
    start, latest = {"t": dict.fromkeys(found, 7)}, {"t": {p: 7 + n for p, n in found.items()}}
    end = limit_to(start, latest, allowed)
    moved = sum(end["t"][p] - 7 for p in found)
    assert moved == min(allowed, sum(found.values()))
    assert all(7 <= end["t"][p] <= latest["t"][p] for p in found)


@given(sizes, st.integers(1, 5), st.one_of(st.none(), st.integers(1, 30)))
def test_tasks_together_read_every_offset_once(found, tasks, at_least):
    work = ranges({"t": dict.fromkeys(found, 0)}, {"t": found})
    packed = pack(work, tasks, at_least)
    read = sorted((r.partition, r.low, r.high) for task in packed for r in task)
    for partition, size in found.items():
        edges = [(low, high) for p, low, high in read if p == partition]
        assert sum(high - low for low, high in edges) == size
        assert all(a[1] == b[0] for a, b in pairwise(edges))
    if at_least is None:
        assert len(packed) <= tasks


def test_a_partition_is_not_split_unless_more_tasks_are_asked_for():
    work = [Range("t", 0, 0, 1_000_000)]
    assert pack(work, 4, None) == [(work[0],)]
    assert len(pack(work, 4, 8)) == 8


def test_a_large_partition_is_split_by_the_size_asked_for():
    work = [Range("t", 0, 0, 1_000), Range("t", 1, 0, 10)]
    packed = pack(work, 2, None, at_most=250)
    assert max(sum(r.size for r in task) for task in packed) <= 250
    assert sum(r.size for task in packed for r in task) == 1_010


def test_small_partitions_share_tasks_evenly():
    packed = pack([Range("t", p, 0, 100) for p in range(24)], 2, None)
    assert [sum(r.size for r in task) for task in packed] == [1200, 1200]


BASE = {"kafka.bootstrap.servers": "localhost:1"}


@pytest.mark.parametrize("limits", [(40, 60), (60, 40), (None, 40), (40, None)])
def test_the_smaller_of_two_limits_counts(limits):
    names = ("maxOffsetsPerTrigger", "maxRecordsPerTrigger")
    given = {name: str(limit) for name, limit in zip(names, limits, strict=True) if limit}
    assert SourceOptions.of({**BASE, "subscribe": "t", **given}).max_offsets == 40


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribe": "a"}, "kafka.bootstrap.servers"),
        (BASE, "one of subscribe"),
        ({**BASE, "subscribe": "a", "assign": '{"a":[0]}'}, "one of subscribe"),
        (
            {**BASE, "subscribe": "a", "maxOfsetsPerTrigger": "5"},
            "maxofsetspertrigger; did you mean maxOffsetsPerTrigger",
        ),
        ({**BASE, "subscribe": "a", "startingOffsets": "committed"}, "application name"),
        ({**BASE, "subscribe": "a", "isolationLevel": "dirty"}, "read_committed or"),
        ({**BASE, "subscribe": "a", "failOnDataLoss": "maybe"}, "true or false"),
        ({**BASE, "subscribe": "a", "maxOffsetsPerTrigger": "0"}, "nothing would ever be read"),
        ({**BASE, "subscribe": "a", "endingOffsets": "committed"}, "not committed"),
        ({**BASE, "subscribe": "a", "valueFormat": "json"}, "belong together"),
        ({**BASE, "subscribe": "a", "valueFormat": "xml", "valueSchema": "x"}, "json or avro"),
        ({**BASE, "subscribe": "a", "badValues": "skip"}, "fail or null"),
        (
            {**BASE, "subscribe": "a", "maxBytesPerTrigger": "much"},
            "maxBytesPerTrigger is a number",
        ),
        ({**BASE, "subscribe": "a", "tasks": "-1"}, "option tasks is a number from 0 on, not '-1'"),
        ({**BASE, "assign": "a-0"}, "assign is such as"),
        ({**BASE, "subscribe": "a", "startingOffsetsByTimestamp": "7"}, "such as .*, not '7'"),
        ({**BASE, "subscribe": "a", "kafka.isolation.level": "dirty"}, "read_committed or"),
        ({**BASE, "subscribe": "a", "kafka.group.id": "g"}, "unknown setting 'group.id'"),
        (
            {
                **BASE,
                "subscribe": "a",
                "kafka.sasl.mechanism": "OAUTHBEARER",
                "kafka.security.protocol": "SASL_SSL",
            },
            "a token would be old",
        ),
    ],
)
def test_options_that_make_no_sense_are_named(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        SourceOptions.of(options)


def test_spark_s_own_name_of_the_isolation_level_is_understood():
    given = {**BASE, "subscribe": "a", "kafka.isolation.level": "read_uncommitted"}
    assert not SourceOptions.of(given).committed_only
    assert SourceOptions.of({**BASE, "subscribe": "a"}).committed_only


def test_secrets_are_never_printed():
    options = SourceOptions.of(
        {**BASE, "subscribe": "a", "kafka.security.protocol": "SASL_SSL",
         "kafka.sasl.username": "me", "kafka.sasl.password": "hunter2"}
    )  # fmt: skip
    assert options.settings.sasl_password == "hunter2"
    assert "hunter2" not in repr(options)


def test_a_first_batch_that_is_repeated_begins_where_it_once_began():
    """Spark does not log where a query began, and asks again: "latest" is later by then."""
    reader = StreamReader(SourceOptions.of({**BASE, "subscribe": "t"}))
    began, later = {"topics": {"t": {"0": 5}}}, {"topics": {"t": {"0": 99}}}
    end = {"topics": {"t": {"0": 20}}, "origin": began}
    work = reader.partitions({**later, "origin": later}, end)
    assert work == [Work((Range("t", 0, 5, 20),))]
    following = reader.partitions(end, {"topics": {"t": {"0": 30}}, "origin": began})
    assert following == [Work((Range("t", 0, 20, 30),))]
