"""The reference is whole, and what the guides say of names is what the program has."""

import re
from dataclasses import fields

import pytest
from tests.docs.site import DOCS, generated_pages
from tests.support.markdown import blocks

import semel
from semel.broker.settings.definitions import Setting
from semel.broker.settings.of_brokers import BROKER_SETTINGS
from semel.broker.settings.of_topics import GROUP_SETTINGS, TOPIC_SETTINGS
from semel.cli.__main__ import COMMANDS
from semel.client.settings import ConsumerSettings, ProducerSettings
from semel.wire.errors import ErrorCode

SOURCE = DOCS.parent / "src" / "semel"
WITHOUT_EFFECT = "Without effect here"


def page(name: str) -> str:
    return generated_pages()[f"docs/reference/{name}.md"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("broker-settings", list(BROKER_SETTINGS)),
        ("topic-settings", [*TOPIC_SETTINGS, *GROUP_SETTINGS]),
        ("client-settings", [f.name for f in fields(ProducerSettings) + fields(ConsumerSettings)]),
        ("errors", [code.name for code in ErrorCode]),
        ("command-line", [f"semel {command}" for command in COMMANDS]),
        ("apis", ["Produce", "EndTxn", "ConsumerGroupHeartbeat"]),
    ],
)
def test_a_generated_page_names_all_of_its_table(name: str, words: list[str]) -> None:
    text = page(name)
    assert not [word for word in words if word not in text]


def test_a_default_that_is_empty_is_told_in_a_word() -> None:
    for name in ("broker-settings", "topic-settings"):
        assert "default ``" not in page(name)


def test_an_error_comes_with_its_advice() -> None:
    fenced = page("errors").split("`PRODUCER_FENCED`")[1].split("\n\n")[0]
    assert "{#producer_fenced}" in fenced
    assert ErrorCode.PRODUCER_FENCED.advice in fenced


# Settings that the tables hold, and whether the program reads them.


def code_beside_the_tables() -> str:
    tables = {"of_brokers.py", "of_topics.py"}
    return "".join(p.read_text() for p in SOURCE.rglob("*.py") if p.name not in tables)


def unread() -> set[str]:
    """Settings that nothing asks for, neither by their name nor for another that follows them."""
    code = code_beside_the_tables()
    tables = (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS)
    every = [setting for table in tables for setting in table.values()]
    read = {setting.name for setting in every if f'"{setting.name}"' in code}
    while more := {
        name
        for setting in every
        if setting.name in read
        for name, _ in setting.fallbacks
        if name not in read
    }:
        read |= more
    return {setting.name for setting in every if setting.name not in read and not fixed(setting)}


def fixed(setting: Setting) -> bool:
    """It takes the one value that this broker has anyway."""
    words = setting.allowed.words if setting.allowed else ""
    return "only 1 is allowed" in words or "not available" in words


def test_a_setting_that_nothing_reads_says_that_it_is_without_effect() -> None:
    said = {
        setting.name
        for table in (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS)
        for setting in table.values()
        if WITHOUT_EFFECT in setting.doc
    }
    assert said == unread()


# Guides that list names by hand.


def test_the_guide_to_the_broker_lists_every_metric() -> None:

    from semel.broker.metrics.collector import MetricsCollector
    from semel.client.blocking import Producer

    guide = (DOCS / "guides" / "broker.md").read_text()
    with semel.Broker(settings={"metrics.port": 0}) as broker:
        with Producer(broker.bootstrap_servers, transactional_id="t") as producer:
            producer.init_transactions()
        collector = MetricsCollector(broker, broker.metrics)
        names = {metric.name for metric in collector.collect() if "process" not in metric.name}
    listed = {name.removesuffix("_total") for name in re.findall(r"`(semel_\w+)", guide)}
    assert listed == names


def test_the_guide_to_spark_lists_every_option() -> None:
    from semel.spark.sink.keywords import SinkKeywords
    from semel.spark.source.keywords import SourceKeywords

    guide = (DOCS / "guides" / "spark.md").read_text()
    listed = set(re.findall(r"`(\w+)`", guide))
    pipeline = re.search(
        r"@dataclass\nclass Pipeline:.*?(?=\n    def )",
        (SOURCE / "spark/pipeline.py").read_text(),
        re.DOTALL,
    )
    assert pipeline is not None
    fields = set(re.findall(r"^    (\w+): ", pipeline[0], re.MULTILINE))
    options = SinkKeywords.__annotations__.keys() | SourceKeywords.__annotations__.keys()
    assert not (options | fields) - listed


def test_the_texts_of_troubleshooting_are_those_of_the_program() -> None:
    """Nearly all words of a text stand in the source, with the same neighbours."""
    source = _words("".join(path.read_text() for path in SOURCE.rglob("*.py")))
    known = set(zip(source, source[1:], source[2:], strict=False))
    wrong = {
        block.name: share
        for block in blocks(DOCS / "troubleshooting.md")
        if block.language == "text" and not block.text.startswith("$")
        if (share := _share(_words(block.text), known)) < 0.45
    }
    assert not wrong


def _share(words: list[str], known: set[tuple[str, str, str]]) -> float:
    """How many of the words are in a run of three that is known."""
    found = set()
    for place, run in enumerate(zip(words, words[1:], words[2:], strict=False)):
        if run in known:
            found |= {place, place + 1, place + 2}
    return len(found) / len(words)


def _words(text: str) -> list[str]:
    """Without what a program fills in, and however the text is divided into strings."""
    joined = re.sub(r"\{[^{}]*\}", "", re.sub(r"\"\s*\n\s*f?\"", "", text))
    return re.findall(r"[a-z_]+", joined.lower())
