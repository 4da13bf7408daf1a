"""Breaks the client's pure half on purpose and sees who notices: transactions, membership, reading.

`make mutants` runs it; the rules are those of `run.py` beside it.
"""

import sys

from run import Mutant, main

TRANSACTIONS = "semel/client/machines/transactions"
MEMBERSHIP = "semel/client/machines/consumer_membership.py"
FETCHING = "semel/client/machines/fetching.py"
COMMITTED = "semel/wire/batches/committed.py"
JUDGES = {
    "decisions": ["tests/client/machines"],
    "worlds": [
        "tests/simulation/test_client_worlds.py",
        "tests/simulation/test_consumer_members.py",
    ],
}

MUTANTS = (
    Mutant(
        "the end is asked for while records are unanswered",
        f"{TRANSACTIONS}/manager.py",
        "                if batches_unsettled:",
        "                if False:",
    ),
    Mutant(
        "records go to a partition before it is in the transaction",
        f"{TRANSACTIONS}/manager.py",
        "        return not self.is_transactional or partition in self.partitions",
        "        return True",
    ),
    Mutant(
        "a lost answer is taken for success",
        f"{TRANSACTIONS}/requests.py",
        "        self.manager.send_again(self, now_ms, unsure=True)",
        "        self.pending.settle()",
    ),
    Mutant(
        "a lost coordinator is asked again instead of looked up",
        f"{TRANSACTIONS}/requests.py",
        "                manager.forget_coordinator(self.target)\n            manager.put_off",
        "                pass\n            manager.put_off",
    ),
    Mutant(
        "a fenced producer goes on",
        f"{TRANSACTIONS}/requests.py",
        "    return TxnVerdict.FATAL\n",
        "    return TxnVerdict.ABORTABLE\n",
    ),
    Mutant(
        "the next identity that the end hands out is ignored",
        f"{TRANSACTIONS}/requests.py",
        "manager.transaction_ended(identity if identity.is_valid else None)",
        "manager.transaction_ended(None)",
    ),
    Mutant(
        "sequences go on where another identity begins",
        f"{TRANSACTIONS}/manager.py",
        "            self.producer = successor\n            self._reset_sequences = True",
        "            self.producer = successor",
    ),
    Mutant(
        "a batch given up under version 1 leaves the epoch as it is",
        f"{TRANSACTIONS}/manager.py",
        "failure._replace(kind=ErrorKind.ABORTABLE), needs_bump=True)",
        "failure._replace(kind=ErrorKind.ABORTABLE), needs_bump=False)",
    ),
    Mutant(
        "partitions of the last transaction count for the next",
        f"{TRANSACTIONS}/manager.py",
        "        self.pending_partitions.clear()\n        self.partitions.clear()",
        "        self.pending_partitions.clear()",
    ),
    Mutant(
        "an abort after an error commits",
        f"{TRANSACTIONS}/manager.py",
        "        return self._end(commit=False)",
        "        return self._end(commit=True)",
    ),
    Mutant(
        "a transaction of offsets alone is taken for an empty one",
        f"{TRANSACTIONS}/requests.py",
        "            manager.started = True\n            manager.enqueue(TxnOffsetCommitHandler",
        "            manager.enqueue(TxnOffsetCommitHandler",
    ),
    Mutant(
        "offsets under version 2 do not begin a transaction",
        f"{TRANSACTIONS}/manager.py",
        "            self.started = True\n            self.enqueue(TxnOffsetCommitHandler",
        "            self.enqueue(TxnOffsetCommitHandler",
    ),
    Mutant(
        "the end overtakes the offsets",
        f"{TRANSACTIONS}/requests.py",
        "    ADD_PARTITIONS_OR_OFFSETS = 2\n    END_TXN = 3",
        "    ADD_PARTITIONS_OR_OFFSETS = 3\n    END_TXN = 2",
    ),
    Mutant(
        "two requests are under way at once",
        f"{TRANSACTIONS}/manager.py",
        "        if self.in_flight is not None or self.state is State.FATAL_ERROR:",
        "        if self.state is State.FATAL_ERROR:",
    ),
    Mutant(
        "a partition that may be in the transaction unknown to us is left there",
        f"{TRANSACTIONS}/manager.py",
        "            self.bumping = self.bumping or (may_have_begun and self.can_bump)\n",
        "",
    ),
    Mutant(
        "a batch with a gap before it is given up while the one before is on its way",
        "semel/client/machines/delivery.py",
        "        if not is_oldest:",
        "        if False:",
    ),
    Mutant(
        "a member tells that it gave up what it still reads",
        MEMBERSHIP,
        "        if answer.assignment is not None:\n            self.target",
        "        if answer.assignment is not None:\n"
        "            self.owned = self.owned & frozenset(\n"
        "                TopicIdPartition(t.topic_id, i)\n"
        "                for t in answer.assignment.topic_partitions\n"
        "                for i in t.partitions\n            )\n            self.target",
    ),
    Mutant(
        "an expelled member joins again and keeps what it had",
        MEMBERSHIP,
        "            self.expelled()\n            return Next.JOIN",
        "            self.phase, self.epoch = Phase.JOINING, 0\n            return Next.JOIN",
    ),
    Mutant(
        "an expelled member commits under the epoch of its next life",
        MEMBERSHIP,
        "        self.owned = self.target = NOTHING\n",
        "        self.owned = self.target = NOTHING\n        self.metadata = GroupMetadata('g')\n",
    ),
    Mutant(
        "what the broker may not have heard is not said again",
        MEMBERSHIP,
        "        self._told = self._saying = None",
        "        self._told = self._saying",
    ),
    Mutant(
        "an answer to a former life is believed",
        MEMBERSHIP,
        "        if self._saying is None or self.phase not in (Phase.JOINING, Phase.MEMBER):",
        "        if self.phase not in (Phase.JOINING, Phase.MEMBER):",
    ),
    Mutant(
        "a log that was cut back is read on",
        FETCHING,
        "    if end.end_offset < state.position:",
        "    if end.end_offset < 0:",
    ),
    Mutant(
        "aborted records are shown",
        COMMITTED,
        "        elif batch.is_transactional and batch.producer_id in aborting:",
        "        elif False:",
    ),
    Mutant(
        "after an abort the producer stays void",
        COMMITTED,
        "                aborting.discard(batch.producer_id)",
        "                pass",
    ),
)

if __name__ == "__main__":
    sys.exit(main(MUTANTS, JUDGES))
