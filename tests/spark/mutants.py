"""Takes out each rule of the Spark sink in turn, in a copy, and sees whether a test notices.

python tests/spark/mutants.py              all of them
python tests/spark/mutants.py "rule 5"     those with these words in their description
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FAST = (
    "tests/spark/test_claims.py",
    "tests/spark/test_query_batch.py",
    "tests/spark/test_claim_service.py",
    "tests/columnar/test_columnar.py",
    "tests/spark/test_lent.py",
)
SPARK = "tests/spark/test_sink.py::"
TAKEOVER = (f"{SPARK}test_a_commit_that_lands_during_the_takeover_is_seen",)
FORGOTTEN = (f"{SPARK}test_a_forgotten_commit_entry_does_not_repeat_the_batch",)
STRANGER = (f"{SPARK}test_another_application_s_open_transaction_over_the_ledger_is_waited_for",)
STATEFUL = (f"{SPARK}test_a_stateful_query_goes_on_across_a_skipped_batch",)
TIMEOUT = (f"{SPARK}test_a_transaction_that_times_out_is_run_again",)
REFUSALS = (f"{SPARK}test_what_cannot_be_exactly_once_is_refused_in_a_sentence",)


class Mutant(NamedTuple):
    sin: str
    file: str
    old: str
    new: str
    judges: tuple[str, ...] = FAST


MUTANTS = (
    Mutant(
        "rule 1: looks into the ledger before the fence",
        "spark/sink/transaction.py",
        """        self.at("before fence", batch)
        self._ledger.create()
""",
        """        self._ledger.create()
        self.committed = self._ledger.read()
        self._ledger.read = lambda: self.committed
        self.at("before fence", batch)
""",
        TAKEOVER,
    ),
    Mutant(
        "rule 1: does not wait for another application's open transaction",
        "client/machines/ledger.py",
        "        yield Unstable(stable, end)\n",
        "        break\n",
        STRANGER,
    ),
    Mutant(
        "rule 2: compares batch numbers only",
        "spark/query_batch.py",
        "    if committed.reads_the_same(batch):",
        "    if committed.batch == batch.batch:",
    ),
    Mutant(
        "rule 2: does not look at the time of planning",
        "spark/query_batch.py",
        "        if committed.planned_with(batch):",
        "        if True:",
    ),
    Mutant(
        "rule 2: a new checkpoint writes everything again",
        "spark/query_batch.py",
        "    if not begin_anew and _may_repeat(committed, batch):",
        "    if False:",
    ),
    Mutant(
        "rule 2: runs any later batch",
        "spark/query_batch.py",
        "batch.batch == committed.batch + 1 and batch.start == committed.end",
        "batch.batch > committed.batch",
    ),
    Mutant(
        "rule 2: a skipped stateful batch is not run",
        "spark/sink/sink.py",
        "        if running.is_stateful:",
        "        if False:",
        STATEFUL,
    ),
    Mutant(
        "rule 3: lends the old epoch again",
        "spark/kafka/transactions.py",
        "                self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch\n"
        "            return int(code)",
        "                pass\n            return int(code)",
    ),
    Mutant(
        "rule 3: version 1 keeps its epoch over transactions",
        "spark/kafka/transactions.py",
        "            self._spent = self.protocol == 1",
        "            self._spent = False",
    ),
    Mutant(
        "rule 3: one token for all attempts",
        "spark/kafka/transactions.py",
        "token = secrets.token_hex(16)",
        'token = "always the same"',
    ),
    Mutant(
        "rule 3: version 1 aborts by EndTxn, and keeps the epoch",
        "spark/kafka/transactions.py",
        "if self.protocol == 1 or self._end(committed=False)",
        "if self._end(committed=False)",
    ),
    Mutant(
        "rule 4: two writers at a time",
        "spark/sink/claims.py",
        "if target not in self._holder]",
        "]",
    ),
    Mutant(
        "rule 4: any token opens the gate",
        "spark/sink/claim_service.py",
        'if not hmac.compare_digest(str(message.get("token")), self._token):',
        "if False:",
    ),
    Mutant(
        "rule 5: a second attempt goes on where the first stopped",
        "spark/sink/claims.py",
        "            if writer.ever_granted:",
        "            if False:",
    ),
    Mutant(
        "rule 5: a task lost while it holds a partition is forgiven",
        "spark/sink/claims.py",
        "if gone is not None and gone.held and not self.closed:",
        "if False:",
    ),
    Mutant(
        "rule 5: a batch without a producer is sent",
        "columnar/encode.py",
        "    assert producer_id >= 0",
        "    assert producer_id >= -1",
    ),
    Mutant(
        "rule 5: speculation is let in",
        "spark/sink/committer.py",
        '    if settings.get("spark.speculation", "false") == "true":',
        "    if False:",
        REFUSALS,
    ),
    Mutant(
        "rule 6: the ledger is not written",
        "spark/sink/transaction.py",
        "            self._ledger.write(self._lender, batch)\n",
        "",
        FORGOTTEN,
    ),
    Mutant(
        "rule 6: rows are not counted before the commit",
        "spark/sink/claims.py",
        "        return self._mismatch(seen)",
        "        return None",
    ),
    Mutant(
        "rule 6: commits while something is held",
        "spark/sink/claims.py",
        "        if self._holder:",
        "        if False:",
    ),
    Mutant(
        "rule 6: claims are granted after the end",
        "spark/sink/claims.py",
        "        self.closed = True\n",
        "",
    ),
    Mutant(
        "rule 6: doubt is taken for success",
        "spark/sink/transaction.py",
        "        if outcome is CommitOutcome.COMMITTED:",
        "        if True:",
        TIMEOUT,
    ),
    Mutant(
        "rule 7: Spark Connect is let in",
        "spark/sink/committer.py",
        '    if not hasattr(frame, "_jdf"):',
        "    if False:",
        REFUSALS,
    ),
    Mutant(
        "rule 7: continuous and real-time triggers are let in",
        "spark/sink/streams.py",
        "        if mode in trigger:",
        "        if False:",
        REFUSALS,
    ),
)


def main() -> int:
    words = " ".join(sys.argv[1:])
    chosen = [mutant for mutant in MUTANTS if words in mutant.sin]
    missed = [mutant.sin for mutant in chosen if not noticed(mutant)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} noticed")
    return 1 if missed else 0


def noticed(mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        source = Path(scratch) / "src"
        shutil.copytree(ROOT / "src", source)
        target = source / "semel" / mutant.file
        text = target.read_text()
        assert text.count(mutant.old) == 1, f"{mutant.sin}: the text has changed"
        target.write_text(text.replace(mutant.old, mutant.new))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-m", "not interop and not soak",
             *mutant.judges],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    print(
        f"{'noticed' if done.returncode == 1 else 'MISSED '}  {mutant.sin}",
        *found[:1],
        sep="\n    ",
        flush=True,
    )
    return done.returncode == 1


if __name__ == "__main__":
    raise SystemExit(main())
