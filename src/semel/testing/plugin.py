"""The pytest plugin: fixtures `kafka`, `kafka_module` and `kafka_session`.

pytest loads it by itself once Semel is installed, so it imports nothing but pytest: the broker
comes with the first test that asks for one.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from semel.testing.kafka import Kafka

SCOPES = ("function", "class", "module", "package", "session")


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "how long a broker of the fixture `kafka` lives"
    parser.addini("kafka_scope", f"{words}: {', '.join(SCOPES)}", default="function")
    parser.getgroup("semel").addoption(
        "--kafka-scope", choices=SCOPES, help=f"{words} (default: kafka_scope, or function)"
    )


def _scope(fixture_name: str, config: pytest.Config) -> Any:
    scope = config.getoption("--kafka-scope") or config.getini("kafka_scope")
    if scope not in SCOPES:
        raise pytest.UsageError(f"kafka_scope is one of {', '.join(SCOPES)}, not {scope!r}")
    return scope


@pytest.fixture(scope="session")
def kafka_settings() -> Mapping[str, object]:
    """The settings of the brokers of tests, by Kafka's names. Override it where you want others."""
    return {}


@pytest.fixture(scope=_scope)
def kafka(kafka_settings: Mapping[str, object]) -> Iterator[Kafka]:
    """A real Kafka broker in this process, on a free port, with its own temporary data.

    Each test has its own, unless `kafka_scope` says otherwise.
    """
    yield from _broker(kafka_settings)


@pytest.fixture(scope="module")
def kafka_module(kafka_settings: Mapping[str, object]) -> Iterator[Kafka]:
    """As `kafka`, but one broker for all tests of a module."""
    yield from _broker(kafka_settings)


@pytest.fixture(scope="session")
def kafka_session(kafka_settings: Mapping[str, object]) -> Iterator[Kafka]:
    """As `kafka`, but one broker for the whole run; under xdist, for each worker."""
    yield from _broker(kafka_settings)


def _broker(settings: Mapping[str, object]) -> Iterator[Kafka]:
    from semel.testing.kafka import Kafka

    kafka = Kafka(settings=settings)
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.close()


# A test begins, ends and fails


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A fault that was never met fails the test that armed it. What is left of a test's faults does
    not reach the next test."""
    brokers = _brokers_of(item)
    if not brokers:
        return (yield)
    try:
        yield
        _verify(brokers)
    except BaseException:
        item.stash[_REPORTS] = [kafka.report() for kafka in brokers]
        raise
    finally:
        for kafka in brokers:
            kafka.begin_test()


def _verify(brokers: list[Kafka]) -> None:
    from semel.testing.faults.faults import UnusedFault

    try:
        for kafka in brokers:
            kafka.verify()
    except UnusedFault as problem:
        pytest.fail(str(problem), pytrace=False)  # where we noticed it interests nobody


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the broker saw is shown with a failing test."""
    report = yield
    if call.when == "call" and report.failed:
        for text in item.stash.get(_REPORTS, ()):
            report.sections.append(("Kafka", text))
    return report


_REPORTS = pytest.StashKey[list[str]]()


def _brokers_of(item: pytest.Item) -> list[Kafka]:
    """Those among the test's fixtures, also if they have another name there."""
    module = sys.modules.get("semel.testing.kafka")
    if module is None:
        return []
    fixtures = getattr(item, "funcargs", {}).values()
    return [value for value in fixtures if isinstance(value, module.Kafka)]
