"""Breaks the transaction coordinator on purpose, in a copy, and sees who notices (`make mutants`).

Each mutant is one small change to the package's text. It must be noticed by the decision tests or
by the simulated worlds; the report says by which. Tests that miss one are not good enough.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CORE = "semel/core/transactions"
JUDGES = {
    "decisions": ["tests/core/transactions"],
    "worlds": ["tests/simulation/test_transaction_worlds.py"],
}
SEEDS = 100
"""Worlds that judge a mutant, unless SEMEL_SEEDS says otherwise."""

Judges = dict[str, list[str]]


class Mutant(NamedTuple):
    sin: str
    file: str
    old: str
    new: str
    also: tuple[tuple[str, str], ...] = ()
    """Further changes (old, new) of the same file: a sin that several rules keep from happening."""

    def commit(self, text: str) -> str:
        for old, new in ((self.old, self.new), *self.also):
            assert old in text, f"cannot make the mutant {self.sin!r}: its text has changed"
            text = text.replace(old, new)
        return text


MUTANTS = (
    Mutant(
        "a forced abort keeps the epoch, so the old producer is not fenced",
        f"{CORE}/ending.py",
        "        epoch=txn.epoch + 1,\n        last_epoch=txn.owner[1],",
        '        epoch=txn.epoch + ("cause" not in changes),\n        last_epoch=txn.owner[1],',
    ),
    Mutant(
        "version 2 ends without a new epoch",
        f"{CORE}/ending.py",
        "        epoch=txn.epoch + 1,\n        last_epoch=txn.owner[1],",
        '        epoch=txn.epoch + ("cause" in changes),\n        last_epoch=txn.owner[1],',
    ),
    Mutant(
        "partitions are added whatever the epoch",
        f"{CORE}/partitions.py",
        "    if epoch != owner_epoch:",
        "    if epoch > owner_epoch:",
    ),
    Mutant(
        "a partition is taken for included whatever the epoch",
        f"{CORE}/partitions.py",
        "        and refusal(txn, producer_id, epoch) is None",
        "        and txn.producer_id == producer_id",
    ),
    Mutant(
        "version 1 ends whatever the epoch",
        f"{CORE}/ending.py",
        "    if command.epoch != owner_epoch:",
        "    if command.epoch > owner_epoch:",
    ),
    Mutant(
        "the other outcome is confirmed as well",
        f"{CORE}/ending.py",
        "    if txn.state not in SAME_OUTCOME[command.commit]:",
        "    if False:",
    ),
    Mutant(
        "commit and abort are mixed up when version 2 prepares",
        f"{CORE}/ending.py",
        "        PREPARE_COMMIT if commit else PREPARE_ABORT,\n        now_ms,\n        epoch",
        "        PREPARE_ABORT if commit else PREPARE_ABORT,\n        now_ms,\n        epoch",
    ),
    Mutant(
        "a reloaded coordinator forgets the markers that are not written",
        f"{CORE}/coordinator.py",
        "return tuple(markers_to_write(txn) for txn in self.transactions.values() if txn.prepared)",
        "return ()",
    ),
    Mutant(
        "a newcomer takes a prepared transaction's id without waiting",
        f"{CORE}/initializing.py",
        "    if txn.prepared:\n        return Decision(Reply(ErrorCode.CONCURRENT_TRANSACTIONS))\n",
        "",
    ),
    Mutant(
        "a zombie that names its old epoch aborts its successor's transaction",
        f"{CORE}/initializing.py",
        "    if named not in ((NO_PRODUCER_ID, NO_EPOCH), txn.owner):",
        "    if False:",
    ),
    Mutant(
        "a retried end of version 2 is taken for a new one",
        f"{CORE}/ending.py",
        "    is_retry = _is_retry(txn, command)",
        "    is_retry = False",
    ),
    Mutant(
        "a zombie of version 2 is given the epoch of its version 1 heir",
        f"{CORE}/ending.py",
        "    if txn.state in (EMPTY, ONGOING) or txn.client_version < TV_2:",
        "    if txn.state in (EMPTY, ONGOING):",
    ),
    Mutant(
        "a late report completes the next transaction",
        f"{CORE}/ending.py",
        "    if txn is None or txn is not command.prepared:",
        "    if txn is None or not txn.prepared:",
    ),
    Mutant(
        "the next producer id is forgotten on completion",
        f"{CORE}/ending.py",
        "    producer_id, epoch = txn.owner\n    handed_on",
        "    producer_id, epoch = txn.producer_id, txn.epoch\n    handed_on",
    ),
    Mutant(
        "partitions of the last transaction are carried into the next",
        f"{CORE}/ending.py",
        "        partitions=NO_PARTITIONS,\n",
        "",
    ),
    Mutant(
        "a partition added later pushes the others out",
        f"{CORE}/partitions.py",
        "txn.partitions | command.partitions, txn.started_at_ms",
        "command.partitions, txn.started_at_ms",
    ),
    Mutant(
        "being busy postpones the timeout",
        f"{CORE}/expiring.py",
        "    return txn.started_at_ms + txn.timeout_ms < now_ms",
        "    return txn.updated_at_ms + txn.timeout_ms < now_ms",
    ),
    Mutant(
        "open transactions are forgotten with the idle ids",
        f"{CORE}/expiring.py",
        "            if txn.state in IDLE and",
        "            if",
    ),
    Mutant(
        "a verification agrees to partitions that were never added",
        f"{CORE}/partitions.py",
        "ErrorCode.NONE if partition in there else missing",
        "ErrorCode.NONE",
    ),
    Mutant(
        "a partition's refusal counts as a written marker",
        f"{CORE}/markers.py",
        "        elif verdict in (MarkerVerdict.WRITTEN, MarkerVerdict.DROP):",
        "        elif verdict is not MarkerVerdict.CANCEL:",
    ),
)


def main(mutants: Sequence[Mutant], judges: Judges, seeds: int = SEEDS) -> int:
    for name, tests in judges.items():
        assert passes(str(ROOT / "src"), tests, seeds), f"the {name} fail without any mutant"
    missed = 0
    for number, mutant in enumerate(mutants, 1):
        noticed = noticed_by(mutant, judges, seeds)
        missed += not noticed
        verdict = ", ".join(noticed) or "NOBODY"
        print(f"{number:2} {mutant.sin}: noticed by {verdict}", flush=True)
    print(f"{len(mutants) - missed} of {len(mutants)} mutants were noticed")
    return 1 if missed else 0


def noticed_by(mutant: Mutant, judges: Judges, seeds: int) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / "semel"
        shutil.copytree(
            ROOT / "src" / "semel", package, ignore=shutil.ignore_patterns("__pycache__")
        )
        file = Path(directory) / mutant.file
        file.write_text(mutant.commit(file.read_text()))
        return [name for name, tests in judges.items() if not passes(directory, tests, seeds)]


def passes(package_directory: str, tests: list[str], seeds: int) -> bool:
    environment = {"SEMEL_SEEDS": str(seeds)} | os.environ | {"PYTHONPATH": package_directory}
    command = [sys.executable, "-m", "pytest", "-x", "-q", *tests]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert run.returncode in (0, 1), run.stdout.decode()[-2000:]
    return run.returncode == 0


if __name__ == "__main__":
    sys.exit(main(MUTANTS, JUDGES))
