"""The wheel as a user gets it: built, installed into a fresh environment, and tried there."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
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


def built(source: Path, target: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", target, source)
    [path] = target.glob("semel-*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


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
    # Spark imports every installed `pyspark_…`: that is how it finds the format by name.
    assert {name.split("/")[0].split("-")[0] for name in names} == {"semel", "pyspark_semel"}
    assert "semel/py.typed" in names
    assert "semel/spark/sessions/quiet.properties" in names
    assert sum(info.file_size for info in zipfile.ZipFile(wheel).infolist()) < 3_000_000


def description(wheel: Path) -> str:
    """What a package index shows of it."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
        metadata = message_from_bytes(archive.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    return str(metadata.get_payload())


def links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", page)


def test_no_link_of_the_package_s_page_leads_nowhere(wheel: Path) -> None:
    page = description(wheel)
    assert "`docs/quickstart.md`" in page
    assert [link for link in links(page) if not link.startswith("https://")] == []


def test_links_of_the_package_s_page_lead_to_the_repository_once_it_is_named(
    tmp_path: Path,
) -> None:
    copy = tmp_path / "copy"
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("LICENSE", "README.md"):
        shutil.copy(ROOT / name, copy)
    project = (ROOT / "pyproject.toml").read_text()
    named = '[project.urls]\nSource = "https://code.example/semel"\n\n[project.scripts]\n'
    (copy / "pyproject.toml").write_text(project.replace("[project.scripts]\n", named))
    page = links(description(built(copy, tmp_path / "wheels")))
    base = "https://code.example/semel/blob/main/"
    assert f"{base}docs/troubleshooting.md#why-was-i-fenced" in page
    assert all((ROOT / link.removeprefix(base).partition("#")[0]).is_file() for link in page)


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
