"""What the sink costs against rows, partitions and batch size, drawn as three pictures.

python -m benchmarks.spark_costs

Shown is processor time, of everything that takes part: it says the same on a busy machine.
"""

from collections.abc import Callable

from benchmarks import chart
from benchmarks.side_by_side import RESULTS
from benchmarks.spark_measure import Rounds, Stage, interleave, stage
from benchmarks.spark_sink import TUNED, delete_topic, make_rows, new_topic
from semel.spark import write

SIZE = 100
ROWS = (1_000, 10_000, 100_000, 1_000_000)
PARTITIONS = (1, 6, 24, 96, 384)
# The sink's smallest buffer; the largest that is a batch of a broker's default `message.max.bytes`.
BATCH_KIB = (64, 128, 256, 512, 960)
SOME_ROWS, SOME_PARTITIONS = 300_000, 6
WARM_UP = 5
_MEMORY = str(128 << 20)


def run(rounds: int = 3) -> None:
    with stage() as where:
        # Else the first points would pay for a cold JVM.
        interleave(_contestants(where, SOME_ROWS, SOME_PARTITIONS), WARM_UP)
        _draw(where, rounds, "rows", "rows", "CPU seconds", {
            n: lambda n=n: _contestants(where, n, SOME_PARTITIONS) for n in ROWS
        })  # fmt: skip
        some_rows = f"CPU seconds for {SOME_ROWS:,} rows"
        _draw(where, rounds, "partitions", "partitions", some_rows, {
            n: lambda n=n: _contestants(where, SOME_ROWS, n) for n in PARTITIONS
        })  # fmt: skip
        _draw(where, rounds, "batch size", "KiB in a batch", some_rows, {
            n: lambda n=n: _contestants(where, SOME_ROWS, SOME_PARTITIONS, n) for n in BATCH_KIB
        })  # fmt: skip


def _draw(
    where: Stage, rounds: int, name: str, x_name: str, y_name: str, points: dict[int, Callable]
) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for x, contestants in points.items():
        measured: dict[str, Rounds] = interleave(contestants(), rounds)
        for who, taken in measured.items():
            label = {"semel": "Semel, exactly once", "spark": "Spark's own sink"}[who]
            lines.setdefault(label, []).append((x, taken.cpu))
        print(name, x, {who: round(taken.cpu, 2) for who, taken in measured.items()}, flush=True)
    target = RESULTS.with_name(f"spark-cost-{name.replace(' ', '-')}.svg")
    chart.save(target, f"Cost against {name}", x_name, y_name, lines)


def _contestants(
    where: Stage, rows: int, partitions: int, batch_kib: int = 256
) -> dict[str, Callable]:
    frame = make_rows(where.spark, rows, SIZE)

    def ours() -> None:
        topic = new_topic(where.bootstrap, partitions)
        write(frame, where.bootstrap, topic, name=topic, batch_bytes=batch_kib << 10)
        delete_topic(where.bootstrap, topic)

    def usual() -> None:
        topic = new_topic(where.bootstrap, partitions)
        # As much memory as our sink takes: hundreds of partitions do not fit into the usual 32 MiB.
        chosen = {**TUNED, "kafka.batch.size": str(batch_kib << 10), "kafka.buffer.memory": _MEMORY}
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", where.bootstrap)
        writer.options(**chosen).option("topic", topic).save()
        delete_topic(where.bootstrap, topic)

    return {"semel": ours, **({"spark": usual} if where.compares else {})}


if __name__ == "__main__":
    run()
