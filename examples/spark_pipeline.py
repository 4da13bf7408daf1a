"""An exactly-once pipeline on Spark: clicks in, clicks per page out.

Needs a broker (`semel serve`, or any Kafka) and `pip install 'semel[spark]'`:

    python examples/spark_pipeline.py localhost:9092

Kill it whenever you like and start it again: no click is counted twice, none is forgotten.
"""

import sys

from semel.client.blocking import Producer
from semel.spark import Pipeline

CLICKS = [f"page-{number % 5}" for number in range(1000)]


def main(bootstrap_servers: str = "localhost:9092", checkpoint: str = "checkpoints/clicks") -> None:
    with Producer(bootstrap_servers) as producer:
        producer.send_many("clicks", [(page.encode(), None) for page in CLICKS])

    Pipeline(
        application="clicks-per-page",
        bootstrap_servers=bootstrap_servers,
        source="clicks",
        transform="SELECT value AS key, string(count(*)) AS value FROM source GROUP BY value",
        sink="clicks-per-page",
        mode="update",
        checkpoint=checkpoint,
    ).run(
        on_progress=lambda done: print(f"batch {done.batch}: {done.rows} rows, lag {done.lag}"),
        availableNow=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
