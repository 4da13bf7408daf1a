"""Breaks what carries the decisions out, and sees whether the simulated broker notices.

`make mutants` runs it; the rules are those of `run.py` beside it.
"""

import sys

from run import Mutant, main

SEEDS = 30  # a whole broker takes most of a second
JUDGES = {
    "tests": ["tests/broker/test_runtime.py", "tests/broker/transactions/test_coordinator_life.py"],
    "broker worlds": ["tests/simulation/test_broker_worlds.py"],
}
RUNTIME = "semel/broker/coordinators/runtime.py"
PARTITION = "semel/broker/partitions/partition.py"
PRODUCE = "semel/broker/api/k00_produce.py"
GROUPS = "semel/broker/coordinators/groups.py"

MUTANTS = (
    Mutant(
        "a reply leaves before its record is durable",
        RUNTIME,
        "        if not self._ticket.durable:\n            return self._wait(command, decision)\n",
        "",
    ),
    Mutant(
        "what was put off is lost when another record is written",
        RUNTIME,
        "        return self._encode(put_off.values()) + entries if put_off else entries",
        "        return entries",
    ),
    Mutant(
        "what was put off is written behind the record that took its place",
        RUNTIME,
        "        return self._encode(put_off.values()) + entries if put_off else entries",
        "        return entries + self._encode(put_off.values())",
    ),
    Mutant(
        "those who wait for a failed append are never answered",
        RUNTIME,
        "                future.set_result(command.refused(self.error))",
        "                pass",
    ),
    Mutant(
        "a loaded shard forgets what it still has to do",
        RUNTIME,
        "        self._run(Decision(effects=machine.resume()))",
        "        pass",
    ),
    Mutant(
        "the end of a transaction is written among the offsets, but not told to their group",
        RUNTIME,
        "            self._apply(self.machine, (record,))\n        return appended.ticket",
        "            pass\n        return appended.ticket",
    ),
    Mutant(
        "offsets are taken without their transaction's agreement",
        "semel/broker/api/k28_txn_offset_commit.py",
        "    if error is not ErrorCode.NONE:\n        return command.refused(error)",
        "",
    ),
    Mutant(
        "what a failed sync refused stays in the log",
        PARTITION,
        "        if durable_to is not None and durable_to < log.next_offset:",
        "        if False:",
    ),
    Mutant(
        "readers see what is not durable yet",
        PARTITION,
        "        if ticket.durable:\n            if next_offset > self.high_watermark:",
        "        if True:\n            if next_offset > self.high_watermark:",
    ),
    Mutant(
        "committed readers read up to the high watermark",
        "semel/broker/partitions/fetching.py",
        "    end = stable if is_committed else high_watermark",
        "    end = high_watermark",
    ),
    Mutant(
        "records are acknowledged before they are durable",
        PRODUCE,
        "    if request.acks == ACKS_LEADER or not waiting:",
        "    if True:",
    ),
    Mutant(
        "records are appended whatever the coordinator says",
        PRODUCE,
        "        if error == ErrorCode.NONE:\n            agreed.append((write, guard))",
        "        if True:\n            agreed.append((write, guard))",
    ),
    Mutant(
        "a marker that was refused for now is never sent again",
        "semel/broker/coordinators/marker_sender.py",
        "            self._try_again(pending, partition)\n"
        "        elif verdict is MarkerVerdict.CANCEL:",
        "        elif verdict is MarkerVerdict.CANCEL:",
    ),
    Mutant(
        "members that wait for others are forgotten when the disk fails",
        GROUPS,
        "        self._forget_waiting(shard, ErrorCode.NOT_COORDINATOR)\n"
        "        self._loader.bring_back(shard)",
        "        self._loader.bring_back(shard)",
    ),
    Mutant(
        "after a load nobody watches over the members' sessions",
        GROUPS,
        "                shard.submit(Loaded())\n                self._arm(shard)",
        "                pass",
    ),
    Mutant(
        "a shard whose log cannot be read is given up for good",
        "semel/broker/coordinators/shards.py",
        '"why": str(problem)})\n        self.bring_back(shard)',
        '"why": str(problem)})',
    ),
    Mutant(
        "a shard whose disk is broken when it is loaded waits to be asked for",
        "semel/broker/coordinators/shards.py",
        "            self.bring_back(shard)\n        elif",
        "            pass\n        elif",
    ),
)

if __name__ == "__main__":
    sys.exit(main(MUTANTS, JUDGES, SEEDS))
