"""The example of the consume–transform–produce loop runs as it is written."""

import importlib.util
from pathlib import Path

import pytest

from semel.client import Admin, Consumer, NewTopic, Producer

EXAMPLE = Path(__file__).parents[2] / "examples" / "consume_transform_produce.py"


@pytest.mark.parametrize("way", ["by_hand", "with_transact"])
async def test_every_order_leads_to_one_invoice(bootstrap: str, way: str) -> None:
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    async with Admin(bootstrap) as admin:
        await admin.create_topics([NewTopic("orders", 2), "invoices"], exist_ok=True)
    async with Producer(bootstrap) as producer:
        for number in range(100):
            await producer.send("orders", b"%s %d" % (way.encode(), number))
    await getattr(example, way)(bootstrap, f"billing-{way}", 1_500)
    async with Consumer(
        bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(
            [("invoices", index) for index in await consumer.partitions_for("invoices")]
        )
        mine: list[bytes] = []
        while len(mine) < 100:
            found = [record.value or b"" for record in await consumer.poll(2_000)]
            mine += [value for value in found if way.encode() in value]
    assert sorted(mine) == sorted(b"invoice for %s %d" % (way.encode(), n) for n in range(100))
