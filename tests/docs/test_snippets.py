"""Every snippet of the README and the documentation runs as it stands, or says why it does not."""

from pathlib import Path

import pytest
from tests.support.markdown import ROOT, Block, blocks, pages
from tests.support.snippets import NOT_RUN, RUN, SHOWN, Snippet, run_python, run_shell, snippets

import semel
from semel.broker.settings.settings import Settings, from_toml


def marked(snippet: Snippet) -> object:
    spark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
    return pytest.param(snippet, marks=spark if snippet.needs_spark else [], id=snippet.block.name)


@pytest.mark.slow
@pytest.mark.parametrize("snippet", [*map(marked, snippets("python"))])
def test_a_python_snippet_runs(snippet: Snippet, tmp_path: Path) -> None:
    with semel.Broker(settings={"num.partitions": 3}) as broker:
        printed = run_python(snippet, tmp_path, broker.bootstrap_servers)
    if snippet.block.page == ROOT / "README.md":
        assert printed, "a newcomer's first program shows that it worked"


@pytest.mark.slow
@pytest.mark.parametrize("snippet", [*map(marked, snippets("sh"))])
def test_a_shell_snippet_runs(snippet: Snippet, tmp_path: Path) -> None:
    with semel.Broker() as broker:
        run_shell(snippet, tmp_path, broker.bootstrap_servers)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_block_is_of_a_known_language_and_says_why_it_is_not_run(page: Path) -> None:
    for block in blocks(page):
        language = block.language.split(maxsplit=1)[0] if block.language else ""
        assert language in RUN + SHOWN, f"{block.name}: {language!r}"
        if block.comment.startswith(NOT_RUN):
            assert block.comment.removeprefix(NOT_RUN).strip(), block.name


FILES = [block for page in pages() for block in blocks(page) if block.language == "toml"]


def is_pipeline(block: Block) -> bool:
    return "application" in block.text


@pytest.mark.parametrize("block", [b for b in FILES if not is_pipeline(b)], ids=lambda b: b.name)
def test_a_file_of_settings_is_one_that_the_broker_takes(block: Block, tmp_path: Path) -> None:
    (tmp_path / "semel.toml").write_text(block.text)
    assert Settings(from_toml(tmp_path / "semel.toml"))["log.dir"]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("block", [b for b in FILES if is_pipeline(b)], ids=lambda b: b.name)
def test_a_file_of_a_pipeline_is_one_that_can_be_run(block: Block, tmp_path: Path) -> None:
    from semel.cli.pipeline import load

    (tmp_path / "pipeline.toml").write_text(block.text)
    assert load(tmp_path / "pipeline.toml").application
