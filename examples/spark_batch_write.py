"""A whole DataFrame into a topic, seen at once or not at all, and only once.

    python examples/spark_batch_write.py localhost:9092

Run it twice: the second time it finds its name in the ledger and writes nothing.
"""

import sys

from semel.client.blocking import Admin
from semel.spark import session, write


def main(bootstrap_servers: str = "localhost:9092") -> int:
    with Admin(bootstrap_servers) as admin:
        admin.create_topics(["prices"], exist_ok=True)
    spark = session("load prices", "local[2]", spark__ui__enabled=False)
    prices = spark.range(1000).selectExpr(
        "concat('item-', id) AS key", "to_json(struct(id, id * 3 + 99 AS cents)) AS value"
    )
    rows = write(prices, bootstrap_servers, "prices", name="prices-of-today")
    print(f"{rows} rows written" if rows else "they were written before")
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:])
