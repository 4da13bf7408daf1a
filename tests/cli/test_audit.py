"""`semel audit` as a user types it."""

import json

from tests.cli.conftest import Run

from semel.cli.exits import Exit


def test_topics_are_audited_and_the_exit_code_says_the_verdict(semel: Run, tmp_path) -> None:
    semel("produce", "audited", "-k", ":", stdin="a:1\nb:2\n")
    page = tmp_path / "audit.html"
    clean = semel("audit", "topics", "audited", "--unique", "key", "--html", str(page))
    assert clean.returncode == Exit.DONE, clean.stderr
    assert "Verdict: no anomaly." in clean.stdout
    assert "no anomaly" in page.read_text()
    semel("produce", "audited", "-k", ":", stdin="a:3\n")
    found = semel("audit", "topics", "audited", "--unique", "key", "--json")
    assert found.returncode == Exit.ANOMALIES
    assert json.loads(found.stdout)["counts"] == {"duplicate value": 1}


def test_mistakes_are_told_before_anything_is_read(semel: Run) -> None:
    for words, said in (
        (["topics", "audited", "--unique", "kee"], "'kee' is not known: use key, value"),
        (["topics", "audited", "--html", "/nowhere/at/all.html"], "its folder does not exist"),
        (["run", "--seconds", "soon"], "should be a time, as 90, 90s, 10m or 1h"),
    ):
        refused = semel("audit", *words)
        assert refused.returncode == Exit.USAGE
        assert said in refused.stderr


def test_a_workload_is_run_and_judged(semel: Run) -> None:
    done = semel("audit", "run", "--seconds", "3", "--writers", "1", "--json")
    assert done.returncode == Exit.DONE, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["complete"]
    assert report["facts"]["transactions committed"] > 0
