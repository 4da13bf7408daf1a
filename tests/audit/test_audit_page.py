"""The guide names every anomaly with its meaning."""

from pathlib import Path

from semel.audit import Anomaly

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "audit.md"


def test_the_guide_has_the_table_of_anomalies():
    rows = "".join(f"| {kind.title} | {kind.value} |\n" for kind in Anomaly)
    assert rows in GUIDE.read_text()
