"""The loop that transactions are for, written twice: by hand, and with `transact`.

    python examples/consume_transform_produce.py localhost:9092 by-hand billing-1
    python examples/consume_transform_produce.py localhost:9092 transact billing-2

Both read `orders`, write `invoices`, and stop when there is nothing left to read. Run as many as
you like, each under a transactional id of its own; kill them at any moment and start them again
under the same id: every order leads to one invoice. Settings may follow: group_protocol=consumer.
"""

import asyncio
import sys
from typing import Any

from semel.client import AbortableError, Consumer, Producer, transact

GROUP = "billing"
QUIET_MS = 5_000


def invoice_for(order: bytes | None) -> bytes:
    return b"invoice for " + (order or b"")


async def by_hand(
    bootstrap_servers: str, transactional_id: str, quiet_ms: int, **group: Any
) -> None:
    """What `transact` does for you: offsets, group metadata, aborts, going back."""
    async with (
        Consumer(
            bootstrap_servers,
            group_id=GROUP,
            **group,
        ) as consumer,
        Producer(bootstrap_servers, transactional_id=transactional_id) as producer,
    ):
        await producer.init_transactions()
        consumer.subscribe(["orders"])
        while records := await consumer.poll(quiet_ms):
            await producer.begin_transaction()
            try:
                for record in records:
                    await producer.send("invoices", invoice_for(record.value), record.key)
                await producer.send_offsets_to_transaction(
                    consumer.positions(), consumer.group_metadata()
                )
                await producer.commit_transaction()
            except AbortableError:
                await producer.abort_transaction()
                await consumer.seek_to_committed()  # the records are to be read again


async def with_transact(
    bootstrap_servers: str, transactional_id: str, quiet_ms: int, **group: Any
) -> None:
    async with transact(
        bootstrap_servers,
        inputs=["orders"],
        group_id=GROUP,
        transactional_id=transactional_id,
        stop_when_idle_ms=quiet_ms,
        **group,
    ) as batches:
        async for batch in batches:
            for record in batch:
                await batch.send("invoices", invoice_for(record.value), record.key)


if __name__ == "__main__":
    bootstrap_servers, way, transactional_id, *words = sys.argv[1:]
    pairs = (word.split("=", 1) for word in words)
    settings = {name: int(value) if value.isdigit() else value for name, value in pairs}
    loop = {"by-hand": by_hand, "transact": with_transact}[way]
    asyncio.run(loop(bootstrap_servers, transactional_id, QUIET_MS, **settings))
