"""Breaks the producer on purpose, where callers' mistakes are met, and sees who notices.

`make mutants` runs it; the rules are those of `run.py` beside it.
"""

import sys

from run import Mutant, main

ACCUMULATOR = "semel/client/machines/accumulator.py"
PRODUCER = "semel/client/producer/producer.py"
JUDGES = {
    "decisions": ["tests/client/machines/test_accumulator.py"],
    "worlds": [
        "tests/simulation/test_careless_callers.py",
        "tests/simulation/test_client_worlds.py",
    ],
}

MUTANTS = (
    Mutant(
        "a batch is opened before its record is encoded",
        ACCUMULATOR,
        "            builder = BatchBuilder(self.limits.compression)\n"
        "            index = builder.append(key, value, timestamp, headers)\n",
        "            builder = BatchBuilder(self.limits.compression)\n"
        "            queue.open = Batch(queue.partition, builder, now_ms, self.owner)\n"
        "            self._active[queue.partition] = queue\n"
        "            index = builder.append(key, value, timestamp, headers)\n"
        "            queue.open = batch\n",
    ),
    Mutant(
        "memory is taken for a record that is not encoded",
        ACCUMULATOR,
        "        index = batch.builder.append(key, value, timestamp, headers)\n"
        "        batch.reserved += size\n        self.buffered += size\n        return index\n",
        "        batch.reserved += size\n        self.buffered += size\n"
        "        return batch.builder.append(key, value, timestamp, headers)\n",
    ),
    Mutant(
        "what is no bytes is taken for none",
        PRODUCER,
        "        if type(value_bytes) is not bytes:",
        "        if value_bytes:",
    ),
    Mutant(
        "whoever is cancelled may have sent the record all the same",
        PRODUCER,
        "        self._sender.wake()\n        return Delivery(batch, index, timestamp)",
        "        self._sender.wake()\n        await asyncio.sleep(0)\n"
        "        return Delivery(batch, index, timestamp)",
    ),
    Mutant(
        "a partition is in the transaction though its record was refused",
        PRODUCER,
        "        if size > self.settings.max_request_size or self._acc",
        "        if self._transactional:\n"
        "            self._join_transaction(queue.partition, 0.0)\n"
        "        if size > self.settings.max_request_size or self._acc",
    ),
    Mutant(
        "a record that waited joins whatever transaction is open then",
        PRODUCER,
        "        if self._transactional and self._manager.transaction is not transaction:",
        "        if False:",
    ),
    Mutant(
        "who gave up waiting in line is waited for",
        PRODUCER,
        "        finally:\n            queue.in_line -= 1",
        "        finally:\n            pass",
    ),
)

if __name__ == "__main__":
    sys.exit(main(MUTANTS, JUDGES))
