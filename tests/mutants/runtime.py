"""Breaks what carries the decisions out, and sees whether the simulated broker notices.

`make mutants` runs it; the rules are those of `run.py` beside it.
"""

import sys

from run import Mutant, main

SEEDS = 30  # a whole broker takes most of a second
JUDGES = {
    "tests": [
        "tests/broker/test_runtime.py",
        "tests/broker/test_recreated_topics.py",
        "tests/broker/test_topics_and_disks.py",
        "tests/broker/transactions/test_coordinator_life.py",
        "tests/store/test_disk_layout.py",
    ],
    "broker worlds": ["tests/simulation/test_broker_worlds.py"],
}
RUNTIME = "semel/broker/coordinators/runtime.py"
PARTITION = "semel/broker/partitions/partition.py"
PRODUCE = "semel/broker/api/k00_produce.py"
GROUPS = "semel/broker/coordinators/groups.py"
PARTITIONS = "semel/broker/partitions/partitions.py"
DIRECTORY = "semel/store/directory.py"

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
    Mutant(
        "a walk over the partitions takes a deleted topic's logs for offline ones",
        PARTITIONS,
        "                if not partition.is_deleted:\n                    yield partition",
        "                yield partition",
        also=(
            (
                '        assert known is topic, f"{topic} is not, or no longer, in the catalog"\n',
                "",
            ),
            (
                "            self._remove_log(topic.name, index)  # of",
                "            self.store.delete(topic.name, index)  # of",
            ),
        ),
    ),
    Mutant(
        "a large topic that is deleted while it is made comes back",
        PARTITIONS,
        "            if self._by_topic.get(topic.name) is partitions:\n"
        "                self._by_topic[topic.name] = list(partitions)",
        "            self._by_topic[topic.name] = list(partitions)",
    ),
    Mutant(
        "a large topic that is deleted while it is made is made to the end",
        PARTITIONS,
        "                if self._by_topic.get(topic.name) is not partitions:\n"
        "                    break  # deleted",
        "                if False:\n                    break  # deleted",
    ),
    Mutant(
        "a log that could not be read is cut off at what was known of it",
        PARTITION,
        "        state, snapshot_offset = load_state(log, self._now_ms())\n"
        "        self.log = log\n",
        "        self.log = log\n"
        "        state, snapshot_offset = load_state(log, self._now_ms())\n",
    ),
    Mutant(
        "an abort counts whose index could not be written",
        PARTITION,
        "                return self._storage_refusal()\n        self._reached(base_offset + 1",
        "                pass\n        self._reached(base_offset + 1",
    ),
    Mutant(
        "a machine outlives the log it was read from",
        RUNTIME,
        "        self.partition.on_reopened = self._reopened",
        "        pass",
    ),
    Mutant(
        "a transaction's offsets outlive their topic",
        "semel/core/groups/offsets/requests.py",
        "                offset.topic_id,\n                producer_id,",
        "                offset.topic_id if producer_id < 0 else NO_TOPIC_ID,\n"
        "                producer_id,",
    ),
    Mutant(
        "offsets of topics that went while nobody could be told stay",
        "semel/core/groups/coordinator.py",
        "    offsets.delete_of_strangers(draft)\n",
        "",
    ),
    Mutant(
        "a checkpoint vouches for what its owner could not read",
        DIRECTORY,
        "            if log.offline is None:  # or its owner",
        "            if True:  # or its owner",
    ),
)

if __name__ == "__main__":
    sys.exit(main(MUTANTS, JUDGES, SEEDS))
