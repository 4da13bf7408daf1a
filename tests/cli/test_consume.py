"""`semel consume`: where it begins, when it ends, and how it prints."""

import base64
import json
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from tests.cli.conftest import Run, lines
from tests.support.brokers.process import SemelProcess

from semel.cli.exits import Exit
from semel.cli.places import Kind, LogPlace, parse_place, parse_time
from semel.cli.record_format import Format, as_json
from semel.client import blocking
from semel.client.consumer.fetcher import ConsumerRecord

BINARY = b"\xff\x00"


def record(key: bytes | None = b"k", value: bytes | None = b"v", headers=()) -> ConsumerRecord:
    return ConsumerRecord("t", 3, 7, 1_700_000_000_000, key, value, tuple(headers))


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("%v", b"v\n"),
        ("%t %p %o %k=%v", b"t 3 7 k=v\n"),
        ("%T", b"2023-11-14T22:13:20.000+00:00\n"),
        ("%h", b"a=1,a=2,b=\n"),
        (r"%k\t%v\n", b"k\tv\n"),
        (r"%v\0", b"v\0"),
        (r"%v\r\n", b"v\r\n"),
        (r"%v\c", b"v"),
        (r"\x41\x00\e[0m\\n", b"A\0\x1b[0m\\n\n"),
        (r"\\c", b"\\c\n"),
        ("100%%", b"100%\n"),
        ("%%v", b"%v\n"),
        ("é", "é\n".encode()),
        ("", b"\n"),
    ],
)
def test_a_format_has_parts_of_the_record_and_escapes(form: str, line: bytes) -> None:
    assert Format(form)(record(headers=[("a", b"1"), ("a", b"2"), ("b", None)])) == line


def test_a_format_writes_bytes_as_they_are_and_nothing_for_what_is_absent() -> None:
    assert Format("%k|%v")(record(BINARY, None)) == BINARY + b"|\n"


def test_json_tells_text_bytes_and_nothing_apart_and_keeps_every_header() -> None:
    written = record(None, BINARY, [("a", b"1"), ("a", BINARY), ("b", None), ("a", b"1")])
    encoded = {"base64": base64.b64encode(BINARY).decode()}
    assert json.loads(as_json(written)) == {
        "topic": "t", "partition": 3, "offset": 7, "timestamp": 1_700_000_000_000,
        "key": None, "value": encoded,
        "headers": [
            {"key": "a", "value": "1"}, {"key": "a", "value": encoded},
            {"key": "b", "value": None}, {"key": "a", "value": "1"},
        ],
    }  # fmt: skip
    # Text that looks like the encoding of something else is text all the same.
    for text in ("base64:AAAA", '{"base64": "AAAA"}', "null", ""):
        assert json.loads(as_json(record(value=text.encode())))["value"] == text


def test_records_come_out_as_they_went_in(semel: Run, broker: SemelProcess) -> None:
    semel("topics", "create", "bytes")
    with blocking.Producer(broker.bootstrap) as producer:
        producer.send("bytes", BINARY, b"base64:AAAA", headers=[("h", b"1"), ("h", BINARY)])
        producer.send("bytes", None, b"deleted")
    first, second = lines(semel("consume", "bytes", "-e", "--json"))
    assert (first["key"], first["value"]) == ("base64:AAAA", {"base64": "/wA="})
    assert first["headers"] == [
        {"key": "h", "value": "1"},
        {"key": "h", "value": {"base64": "/wA="}},
    ]
    assert (second["key"], second["value"]) == ("deleted", None)
    raw = semel("consume", "bytes", "-e", "-f", r"%k>%v\0").stdout
    assert raw.encode(errors="surrogateescape") == b"base64:AAAA>" + BINARY + b"\0deleted>\0"


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("beginning", LogPlace(Kind.EARLIEST)), ("earliest", LogPlace(Kind.EARLIEST)),
        ("end", LogPlace(Kind.LATEST)), ("latest", LogPlace(Kind.LATEST)),
        ("4", LogPlace(Kind.OFFSET, 4)), ("-3", LogPlace(Kind.FROM_END, 3)),
        ("@1700000005000", LogPlace(Kind.TIME, 1_700_000_005_000)),
        ("@2023-11-14T22:13:22Z", LogPlace(Kind.TIME, 1_700_000_002_000)),
        ("@2023-11-14T23:13:22.5+01:00", LogPlace(Kind.TIME, 1_700_000_002_500)),
    ],
)  # fmt: skip
def test_a_place_has_a_word(word: str, place: LogPlace) -> None:
    assert parse_place(word) == place


def test_a_time_is_also_given_by_how_long_ago_it_was_or_by_its_date() -> None:
    now_ms = time.time() * 1000
    for word, ago_ms in (("-90s", 90_000), ("-15m", 900_000), ("-2h", 7_200_000), ("-1d", 864e5)):
        assert abs(parse_time(word) - (now_ms - ago_ms)) < 60_000
    assert parse_time("2026-01-31") == datetime(2026, 1, 31).timestamp() * 1000
    assert parse_time("20260131") == parse_time("2026-01-31")


@pytest.mark.parametrize(
    ("word", "at_time", "offset"),
    [
        ("earliest", None, 5), ("latest", None, 15), ("7", None, 7), ("0", None, 5),
        ("99", None, 15), ("-3", None, 12), ("-99", None, 5), ("@0", 6, 6), ("@0", 2, 5),
        ("@0", None, 15),
    ],
)  # fmt: skip
def test_a_place_is_within_what_is_there(word: str, at_time: int | None, offset: int) -> None:
    place = LogPlace(Kind.TIME, 0) if word == "@0" else parse_place(word)
    assert place.within(5, 15, at_time) == offset


def test_reading_begins_at_a_place(semel: Run, broker: SemelProcess) -> None:
    semel("topics", "create", "timed")
    with blocking.Producer(broker.bootstrap) as producer:
        for number in range(10):
            producer.send("timed", b"%d" % number, timestamp_ms=1_700_000_000_000 + number * 1000)
    for word, first in (("4", 4), ("-3", 7), ("@1700000004001", 5), ("@-1h", 10), ("end", 10)):
        read = semel("consume", "timed", "-e", "-o", word)
        assert read.returncode == 0, read.stderr
        assert read.stdout.split() == [str(number) for number in range(first, 10)]


def test_a_group_reads_to_the_end_and_goes_on_from_there(semel: Run) -> None:
    semel("topics", "create", "shared", "-p", "3")
    semel("produce", "shared", "-k", ":", stdin="a:1\nb:2\nc:3\nd:4\n")
    first = semel("consume", "shared", "-e", "-g", "finite")
    assert (first.returncode, sorted(first.stdout.split())) == (0, ["1", "2", "3", "4"])
    assert semel("consume", "shared", "-e", "-g", "finite").stdout == ""
    semel("produce", "shared", stdin="5\n")
    assert semel("consume", "shared", "-e", "-g", "finite").stdout == "5\n"
    assert all(row["lag"] == 0 for row in lines(semel("groups", "lag", "finite", "--json")))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_either_protocol_ends_at_what_was_there_at_the_beginning(
    semel: Run, protocol: str
) -> None:
    topic = f"ends-{protocol}"
    semel("topics", "create", topic, "-p", "2")
    # The end of a transaction is a record too, which nobody is shown.
    semel("produce", topic, "-t", topic, stdin="1\n2\n")
    flags = ("-g", topic, "-X", f"group.protocol={protocol}")
    read = semel("consume", topic, "-e", *flags)
    assert (read.returncode, sorted(read.stdout.split())) == (0, ["1", "2"])


def test_a_member_without_partitions_ends_when_the_group_has_nothing_left(
    semel: Run, broker: SemelProcess
) -> None:
    semel("topics", "create", "single")
    semel("produce", "single", stdin="1\n2\n")
    with blocking.Consumer(
        broker.bootstrap, group_id="two", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["single"])
        got = 0
        while got < 2:
            got += len(consumer.poll(timeout_ms=1_000))
        consumer.commit()
        read = semel("consume", "single", "-e", "-g", "two")
    assert (read.returncode, read.stdout) == (0, "")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("-o", "end"), "-o and -g exclude each other: a group goes on where it stands."),
        (("-o", "beginning"), "or move the group with `semel groups reset g`."),
        (("-p", "0"), "-p and -g exclude each other: a group divides the partitions among"),
    ],
)
def test_a_group_is_not_told_where_to_read(semel: Run, flags: tuple[str, ...], says: str) -> None:
    refused = semel("consume", "anything", "-g", "g", *flags)
    assert refused.returncode == Exit.USAGE
    assert says in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_setting_of_the_consumer_goes_before_ours(semel: Run) -> None:
    semel("topics", "create", "new-group")
    semel("produce", "new-group", stdin="old\n")
    flags = ("-g", "newcomers", "-X", "auto_offset_reset=latest")
    assert semel("consume", "new-group", "-e", *flags).stdout == ""


def test_what_nobody_took_is_not_committed(semel: Run, broker: SemelProcess) -> None:
    semel("topics", "create", "refused")
    semel("produce", "refused", stdin="1\n2\n")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "semel.cli", "consume", "refused", "-e", "-g", "lossless"]
        done = subprocess.run(
            [*command, "-b", broker.bootstrap], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == Exit.FAILED
    assert done.stderr == "semel: the output cannot be written: No space left on device\n"
    assert semel("consume", "refused", "-e", "-g", "lossless").stdout == "1\n2\n"
