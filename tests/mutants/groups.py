"""Breaks the group coordinator on purpose; see `run.py` beside this file."""

import sys

from run import Mutant, main

CORE = "semel/core/groups"
JUDGES = {
    "decisions": ["tests/core/groups"],
    "worlds": ["tests/simulation/test_group_crowds.py", "-m", "not soak"],
}

MUTANTS = (
    Mutant(
        "a commit of a generation that is over is taken",
        f"{CORE}/classic/life.py",
        "        if generation != group.generation:\n            return",
        "        if generation > group.generation:\n            return",
    ),
    Mutant(
        "the former self of a static member may go on",
        f"{CORE}/classic/group.py",
        "            if current != member_id:\n"
        "                raise RequestRefused(ErrorCode.FENCED_INSTANCE_ID)\n",
        "            member_id = current\n",
    ),
    Mutant(
        "an overtaken assignment is kept",
        f"{CORE}/classic/joining.py",
        '        group.put(member._replace(assignment=b"", awaiting_sync=None))',
        "        group.put(member._replace(awaiting_sync=None))",
    ),
    Mutant(
        "who waits for an assignment is not told that another rebalance began",
        f"{CORE}/classic/joining.py",
        "        send_back(draft, group, ErrorCode.REBALANCE_IN_PROGRESS)\n",
        "        pass\n",
    ),
    Mutant(
        "a rebalance goes on without members that were given an id",
        f"{CORE}/classic/group.py",
        "        return not self.pending_members and self.awaiting",
        "        return self.awaiting",
    ),
    Mutant(
        "a join that is repeated is counted twice",
        f"{CORE}/classic/group.py",
        "            self.awaiting_join_count -= 1\n",
        "            pass\n",
    ),
    Mutant(
        "a member that waits for us is taken for dead",
        f"{CORE}/classic/life.py",
        "    if member is None or member.has_satisfied_heartbeat:",
        "    if member is None:",
    ),
    Mutant(
        "the leader's assignment is not written",
        f"{CORE}/classic/life.py",
        "    draft.keep_classic(group, group.image())\n    for request_id",
        "    draft.keep_classic(group)\n    for request_id",
    ),
    Mutant(
        "members that never sync stay",
        f"{CORE}/classic/joining.py",
        "        group.pending_sync.add(member.member_id)\n",
        "",
    ),
    Mutant(
        "a partition is given before its owner lets go",
        f"{CORE}/consumer/reconcile.py",
        "        return [p for p in partitions if p not in held or p in own]",
        "        return list(partitions)",
    ),
    Mutant(
        "a member enters the next epoch with what it should have given up",
        f"{CORE}/consumer/reconcile.py",
        "        if revoking and self.still_owns(revoking):",
        "        if False:",
    ),
    Mutant(
        "a member that has let go stays in its epoch, and may commit as before",
        f"{CORE}/consumer/reconcile.py",
        "        return _moved(self.member, self.target_epoch, state, kept, {})",
        "        epoch = self.member.epoch if self.member.revoking else self.target_epoch\n"
        "        return _moved(self.member, epoch, state, kept, {})",
    ),
    Mutant(
        "a member that never gives up its partitions keeps them for ever",
        f"{CORE}/consumer/heartbeat.py",
        "            draft.set_timer(key, moved.rebalance_timeout_ms, note=moved.epoch)",
        "            pass",
    ),
    Mutant(
        "any epoch of a consumer will do",
        f"{CORE}/consumer/heartbeat.py",
        "    if epoch > member.epoch or not is_retry:",
        "    if epoch > member.epoch:",
    ),
    Mutant(
        "a late commit counts for partitions that were somebody else's",
        f"{CORE}/consumer/committing.py",
        "    if given_in is None or epoch < given_in:",
        "    if given_in is None:",
    ),
    Mutant(
        "a commit of any earlier epoch of a consumer is taken",
        f"{CORE}/consumer/committing.py",
        "    return epoch == member.epoch\n",
        "    return True\n",
    ),
    Mutant(
        "a commit that was heard is not in the log",
        f"{CORE}/encoding.py",
        "        case OffsetCommitted():\n            return _offset(record)",
        "        case OffsetCommitted(producer_id=-1):\n            return None\n"
        "        case OffsetCommitted():\n            return _offset(record)",
    ),
    Mutant(
        "after a reload the offsets of an open transaction count at once",
        f"{CORE}/encoding.py",
        "OffsetCommitKey.decode(key, 2, 0)[0], value, producer_id)",
        "OffsetCommitKey.decode(key, 2, 0)[0], value, -1)",
    ),
    Mutant(
        "a new classic group begins without those it just gave an id",
        f"{CORE}/classic/joining.py",
        "        if group.pending_members and patience_ms > 0:",
        "        if False:",
    ),
    Mutant(
        "an instance id in use is handed over",
        f"{CORE}/consumer/heartbeat.py",
        "known.classic is None and known.epoch != LEAVE_STATIC_EPOCH:",
        "known.classic is None and False:",
    ),
    Mutant(
        "uniform gives the same partition twice",
        f"{CORE}/consumer/assign.py",
        "            free[topic_id] -= partitions\n",
        "            pass\n",
    ),
    Mutant(
        "an aborted transaction moves offsets",
        f"{CORE}/offsets/store.py",
        "            if commit:\n",
        "            if True:\n",
    ),
    Mutant(
        "the later marker wins, not the later record",
        f"{CORE}/offsets/store.py",
        "                if known is None or offset.order > known.order:",
        "                if True:",
    ),
    Mutant(
        "offsets that are about to change count as stable",
        f"{CORE}/offsets/requests.py",
        "    if command.require_stable and offsets.is_pending(",
        "    if False and offsets.is_pending(",
    ),
    Mutant(
        "offsets of topics that are still read expire",
        f"{CORE}/offsets/requests.py",
        "                is_wanted\n                or offsets.is_pending",
        "                offsets.is_pending",
    ),
    Mutant(
        "a group that turns classic forgets who its members are",
        f"{CORE}/migration/migration.py",
        "    written = classic.image()\n",
        "    written = None\n",
    ),
)

if __name__ == "__main__":
    sys.exit(main(MUTANTS, JUDGES))
