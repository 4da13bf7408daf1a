"""A user's pipeline that touches all of Spark's surface, typed as a strict user types it."""

import threading
from typing import Any

from pyspark.sql import DataFrame

from semel.errors import (
    BatchFailedError,
    DataLostError,
    NoCommittedOffsetsError,
    NoJavaError,
    RefusedError,
    SemelError,
    StaleCheckpointError,
    StoppedError,
)
from semel.spark import (
    ExactlyOnceSink,
    Pipeline,
    Progress,
    SinkKeywords,
    SourceKeywords,
    Trigger,
    WriteKeywords,
    register,
    session,
    start,
    write,
)


def secure(password: str) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "ca.pem",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": password,
    }


def by_hand(bootstrap_servers: str, checkpoint: str, password: str) -> int:
    spark = session("by-hand", "local[2]", quiet=True, spark__ui__enabled=False)
    register(spark)
    rows = (
        spark.readStream.format("semel")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    sink = ExactlyOnceSink(
        bootstrap_servers,
        "shouted",
        application="by-hand",
        group_id="shown-to-lag-tools",
        compression_type="zstd",
        batch_size=500_000,
        transaction_timeout_ms=60_000,
        attempts=2,
        ledger_topic="ledger",
        allow_unverified=False,
        settings=secure(password),
    )
    trigger: Trigger = {"availableNow": True}
    query = start(rows.selectExpr("key", "upper(value) value"), sink, checkpoint, **trigger)
    query.awaitTermination(60)
    start(rows, sink, checkpoint, processingTime="10 seconds").stop()
    print(f"{sink.rows} rows, {sink.lag()} to go; last: {sink.committed}")
    return sink.rows


def load(rows: DataFrame, bootstrap_servers: str) -> int:
    options: WriteKeywords = {"compression_type": "lz4"}
    return write(rows, bootstrap_servers, "prices", name="prices-of-today", **options)


def shout(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("key", "upper(value) AS value")


def pipeline(bootstrap_servers: list[str], checkpoint: str, password: str) -> Pipeline:
    options: SourceKeywords = {"maxOffsetsPerTrigger": 100_000, "isolationLevel": "read_committed"}
    sink_options: SinkKeywords = {"compression_type": "zstd"}
    return Pipeline(
        application="shout",
        bootstrap_servers=bootstrap_servers,
        source=["words", "sentences"],
        transform=shout,
        sink="shouted",
        mode="append",
        watermark="10 minutes",
        checkpoint=checkpoint,
        options=options,
        sink_options=sink_options,
        settings=secure(password),
        spark={"spark.driver.memory": "4g"},
        master="local[2]",
    )


def tell(done: Progress) -> None:
    print(f"batch {done.batch}: {done.rows} rows, {done.rows_per_second:.0f}/s, lag {done.lag}")


def run(made: Pipeline) -> str:
    until = threading.Event()
    try:
        made.run(made.session(quiet=True), on_progress=tell, until=until, availableNow=True)
        made.start(processingTime="1 second").stop()
    except (StaleCheckpointError, NoCommittedOffsetsError) as error:
        return f"the checkpoint: {error}"
    except (BatchFailedError, StoppedError):
        return "run it again"
    except (RefusedError, NoJavaError, DataLostError) as error:
        return f"not here: {error}"
    except SemelError as error:
        return error.code.advice
    return "done"
