"""`semel produce`: what it reads, and what it says when the broker's disk is full."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.support.disks import DISK_FULL, FaultyFiles

import semel as package
from semel.broker.partitions.partitions import Partitions
from semel.cli.exits import Exit


@pytest.mark.parametrize("transactional", [(), ("-t", "full")])
def test_a_full_disk_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transactional: tuple[str, ...]
) -> None:
    disk = FaultyFiles(tmp_path)
    monkeypatch.setattr(Partitions, "files", disk)
    with package.Broker(tmp_path) as broker:
        command = [
            sys.executable,
            "-m",
            "semel.cli",
            "produce",
            "t",
            "-b",
            broker.bootstrap_servers,
        ]
        subprocess.run(command, input=b"fits\n", check=True, capture_output=True)
        disk.fail("write", DISK_FULL, "/t-0/")
        done = subprocess.run(
            [*command, *transactional, "-X", "delivery.timeout.ms=1000"],
            input="does not fit\n", capture_output=True, text=True, check=False,
        )  # fmt: skip
        disk.heal()
    assert done.returncode == Exit.FAILED
    assert done.stderr.startswith("semel: a batch for t-0 was not ")
    assert "t-0 is offline: No space left on device (ENOSPC)" in done.stderr
    assert "it is full, or it fails (KAFKA_STORAGE_ERROR)" in done.stderr
    assert "flush" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_lines_of_any_length_become_records_and_the_last_needs_no_end(semel: Run) -> None:
    semel("topics", "create", "lengths")
    long = "x" * 300_000
    sent = semel("produce", "lengths", stdin=f"\n{long}\nshort")
    assert (sent.returncode, sent.stderr) == (0, "3 records sent to lengths\n")
    assert semel("consume", "lengths", "-e").stdout == f"\n{long}\nshort\n"
