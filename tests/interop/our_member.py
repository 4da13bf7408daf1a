"""Our member of a copying group, as a process: `member BOOTSTRAP FROM TO GROUP ID PROTOCOL`.

Copies until it is killed; says "committed" after every transaction, like the programs beside it.
"""

import asyncio
import sys

from semel.client import transact


async def member(
    bootstrap: str, source: str, target: str, group: str, transactional_id: str, protocol: str
) -> None:
    quick = {"session_timeout_ms": 3_000, "heartbeat_interval_ms": 300}
    async with transact(
        bootstrap,
        inputs=[source],
        group_id=group,
        transactional_id=transactional_id,
        group_protocol=protocol,
        **(quick if protocol == "classic" else {}),
    ) as batches:
        has_worked = False
        async for batch in batches:
            if has_worked and batch.attempt == 1:
                print("committed", flush=True)
            for record in batch:
                await batch.send(target, record.value, record.key)
            has_worked = True


if __name__ == "__main__":
    asyncio.run(member(*sys.argv[2:]))
