"""Every API answers under every set of rules as Apache Kafka 4.3.1 did (`access_matrix.json`).

The file holds, for each question of `tests/interop/access_questions.py`, the error codes and the
operations of Kafka's answers, and for which sets of rules they were given. Whether Kafka still
answers so is asked by `tests/interop/test_differential_access.py`; here no Kafka is needed, so that
a question that is dropped or swapped is noticed at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.access_questions import Question, questions
from tests.interop.access_sets import sets
from tests.interop.test_differential_access import Side, secured
from tests.support.brokers.ports import free_port

from semel.broker.server import Broker

#: Question and version → codes → the sets of rules that hear them.
MATRIX: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "access_matrix.json").read_text()
)
#: Stands for the sets of rules that are not named, those that hear what most do.
OTHERS = ["others"]


def codes(told: Any) -> list[int]:
    """The errors and operations of an answer, in order."""
    if isinstance(told, list):
        return [code for one in told for code in codes(one)]
    if not isinstance(told, dict):
        return []
    found: list[int] = []
    for name, value in told.items():
        if isinstance(value, list | dict):
            found += codes(value)
        elif name.endswith(("error_code", "authorized_operations")):
            found.append(value)
    return found


def heard(answers: dict[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, answer in answers.items():
        found.setdefault(" ".join(map(str, sorted(codes(answer)))), []).append(name)
    most = max(found, key=lambda told: (len(found[told]), told))
    return found | {most: OTHERS}


@pytest.fixture(scope="module")
def semel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    port, secured_port = free_port(), free_port()
    with Broker(tmp_path_factory.mktemp("semel"), settings=secured(port, secured_port)):
        side = Side(f"127.0.0.1:{port}", f"127.0.0.1:{secured_port}")
        yield side
        side.close()


@pytest.mark.parametrize(
    ("question", "version"),
    [
        pytest.param(question, version, id=f"{question.name} v{version}")
        for question in questions()
        for version in question.versions
        if f"{question.name} v{version}" in MATRIX
    ],
)
def test_every_set_of_rules_hears_what_kafka_tells_it(
    semel: Side, question: Question, version: int
) -> None:
    asked = [name for name in sets() if not name.startswith(("prefix-", "wildcard-"))]
    answers = {name: semel.answer(name, question, version) for name in asked}
    assert heard(answers) == MATRIX[f"{question.name} v{version}"]
