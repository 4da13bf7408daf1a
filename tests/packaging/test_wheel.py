"""The wheel as a user gets it: built, installed into a fresh environment, and tried there."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.xdist_group("wheel")]

TRANSACTION = """
import sys
import semel
from semel.client.blocking import Consumer, Producer

with semel.Broker() as broker:
    with Producer(broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("greetings", b"salve")
    with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([semel.TopicPartition("greetings", 0)])
        records = []
        while not records:
            records = consumer.poll(timeout_ms=5_000)
        assert [record.value for record in records] == [b"salve"], records
assert "numpy" not in sys.modules and "pyarrow" not in sys.modules
"""

TABLE = """
import pyarrow as pa
import semel
from semel.client.blocking import Producer

table = pa.table({"value": pa.array([b"one", b"two"], pa.binary())})
with semel.Broker() as broker, Producer(broker.bootstrap_servers) as producer:
    assert producer.send_table("greetings", table) is not None
    producer.flush()
"""

STREAM = """
import tempfile
import semel
from semel.spark import ExactlyOnceSink, session

with semel.Broker() as broker:
    spark = session("wheel")
    numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    rows = numbers.selectExpr("cast(value as string) value")
    sink = ExactlyOnceSink(broker.bootstrap_servers, topic="numbers", application="wheel")
    query = (rows.writeStream.foreachBatch(sink).trigger(processingTime="1 second")
             .option("checkpointLocation", tempfile.mkdtemp()).start())
    while query.lastProgress is None or query.lastProgress["batchId"] < 1:
        assert query.isActive, query.exception()
        query.awaitTermination(1)
    query.stop()
    spark.stop()
"""


def run(*command: object) -> str:
    """What it printed. Outside of the checkout, and without a way back to it."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, cwd="/", env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", target, ROOT)
    [path] = target.glob("semel-*.whl")
    return path


@pytest.fixture
def installed(wheel: Path, tmp_path: Path):
    """Installs the wheel with an extra into an environment of its own: its commands."""

    def install(extra: str = "") -> Path:
        venv.create(tmp_path / "venv", with_pip=True)
        commands = tmp_path / "venv" / "bin"
        run(commands / "python", "-m", "pip", "install", "--quiet", f"{wheel}{extra}")
        return commands

    return install


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"semel"}
    assert "semel/py.typed" in names
    assert "semel/spark/sessions/quiet.properties" in names
    assert sum(info.file_size for info in zipfile.ZipFile(wheel).infolist()) < 3_000_000


def test_the_base_install_is_light_and_makes_transactions(installed) -> None:
    commands = installed()
    assert run(commands / "semel", "--version").startswith("semel ")
    run(commands / "python", "-c", TRANSACTION)
    listed = run(commands / "python", "-m", "pip", "list", "--format", "freeze").lower()
    assert not {"numpy", "pyarrow", "pyspark"} & {line.split("==")[0] for line in listed.split()}


def test_the_arrow_extra_sends_tables(installed) -> None:
    run(installed("[arrow]") / "python", "-c", TABLE)


@pytest.mark.soak
def test_the_spark_extra_runs_a_stream(installed) -> None:
    run(installed("[spark]") / "python", "-c", STREAM)
