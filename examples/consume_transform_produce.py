"""The loop that transactions are for, written twice: by hand, and with `transact`.

    python examples/consume_transform_produce.py localhost:9092 by-hand
    python examples/consume_transform_produce.py localhost:9092 transact

Both read `orders`, write `invoices`, and stop when there is nothing left to read. Kill them at any
moment and start them again: every order leads to one invoice.
"""

import asyncio
import sys

from semel.client import AbortableError, Consumer, Producer, transact

GROUP = "billing"


def invoice_for(order: bytes | None) -> bytes:
    return b"invoice for " + (order or b"")


async def by_hand(bootstrap: str, quiet_ms: int) -> None:
    """What `transact` does for you: offsets, group metadata, aborts, going back."""
    async with (
        Consumer(
            bootstrap,
            group_id=GROUP,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer,
        Producer(bootstrap, transactional_id="billing-by-hand") as producer,
    ):
        consumer.subscribe(["orders"])
        await producer.init_transactions()
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
                committed = await consumer.committed(consumer.assignment())
                for partition in consumer.assignment():
                    if partition in committed:
                        consumer.seek(partition, committed[partition].offset)
                    else:
                        consumer.seek_to_beginning(partition)


async def with_transact(bootstrap: str, quiet_ms: int) -> None:
    async with transact(
        bootstrap, inputs=["orders"], group=GROUP, transactional_id="billing-transact"
    ) as batches:
        try:
            while True:
                async with asyncio.timeout(quiet_ms / 1000):
                    batch = await anext(batches)
                for record in batch.records:
                    await batch.send("invoices", invoice_for(record.value), record.key)
        except TimeoutError:
            print("nothing left to read")


if __name__ == "__main__":
    ways = {"by-hand": by_hand, "transact": with_transact}
    asyncio.run(ways[sys.argv[2]](sys.argv[1], 5_000))
