"""Every snippet of the README and the documentation runs as it stands, or says why it does not."""

import tomllib
from pathlib import Path

import pytest
from tests.support.markdown import ROOT, blocks, pages
from tests.support.snippets import NOT_RUN, RUN, SHOWN, Snippet, run_python, run_shell, snippets

import semel


def marked(snippet: Snippet) -> object:
    spark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
    return pytest.param(snippet, marks=spark if snippet.needs_spark else [], id=snippet.block.name)


@pytest.mark.slow
@pytest.mark.parametrize("snippet", [*map(marked, snippets("python"))])
def test_a_python_snippet_runs(snippet: Snippet, tmp_path: Path) -> None:
    with semel.Broker(settings={"num.partitions": 3}) as broker:
        run_python(snippet, tmp_path, broker.bootstrap_servers)


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
        if language == "toml":
            tomllib.loads(block.text)
