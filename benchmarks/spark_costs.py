"""What the sink costs against rows, partitions and batch size, drawn as three pictures.

python -m benchmarks.spark_costs [rows] [partitions] [batch-size]

Shown is processor time, of everything that takes part: it says the same on a busy machine.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


def run(rounds: int = 3, wanted: Sequence[str] = ()) -> None:
    with stage() as where:
        # Else the first points would pay for a cold JVM.
        interleave(_contestants(where, SOME_ROWS, SOME_PARTITIONS), WARM_UP)
        for name, picture in _PICTURES.items():
            if not wanted or name in wanted:
                _draw(where, rounds, name, picture)


@dataclass(frozen=True)
class _Picture:
    x_name: str
    xs: Sequence[int]
    #: (where, x) → who competes there.
    contestants: Callable[[Stage, int], dict[str, Callable[[], None]]]
    y_name: str = f"CPU seconds for {SOME_ROWS:,} rows of {SIZE} B"
    log: bool = False


def _draw(where: Stage, rounds: int, name: str, picture: _Picture) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for x in picture.xs:
        measured: dict[str, Rounds] = interleave(picture.contestants(where, x), rounds)
        for who, taken in measured.items():
            label = {"semel": "Semel, exactly once", "spark": "Spark's own sink"}[who]
            lines.setdefault(label, []).append((x, taken.cpu))
        print(name, x, {who: round(taken.cpu, 2) for who, taken in measured.items()}, flush=True)
    target = RESULTS.with_name(f"spark-cost-{name}.svg")
    title = f"What the sink costs against {name.replace('-', ' ')}"
    chart.save(target, title, picture.x_name, picture.y_name, lines, picture.log)


def _contestants(
    where: Stage, rows: int, partitions: int, batch_kib: int = 256
) -> dict[str, Callable]:
    frame = make_rows(where.spark, rows, SIZE)

    def ours() -> None:
        topic = new_topic(where.bootstrap, partitions)
        write(frame, where.bootstrap, topic, name=topic, batch_size=batch_kib << 10)
        delete_topic(where.bootstrap, topic)

    def usual() -> None:
        topic = new_topic(where.bootstrap, partitions)
        # As much memory as our sink takes: hundreds of partitions do not fit into the usual 32 MiB.
        chosen = {**TUNED, "kafka.batch.size": str(batch_kib << 10), "kafka.buffer.memory": _MEMORY}
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", where.bootstrap)
        writer.options(**chosen).option("topic", topic).save()
        delete_topic(where.bootstrap, topic)

    return {"semel": ours, **({"spark": usual} if where.compares else {})}


_PICTURES = {
    "rows": _Picture(
        "rows",
        ROWS,
        lambda where, n: _contestants(where, n, SOME_PARTITIONS),
        f"CPU seconds, rows of {SIZE} B",
        True,
    ),
    "partitions": _Picture(
        "partitions", PARTITIONS, lambda where, n: _contestants(where, SOME_ROWS, n)
    ),
    "batch-size": _Picture(
        "KiB in a batch",
        BATCH_KIB,
        lambda where, n: _contestants(where, SOME_ROWS, SOME_PARTITIONS, n),
    ),
}


if __name__ == "__main__":
    run(wanted=sys.argv[1:])
