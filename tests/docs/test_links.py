"""Links between the repository's pages lead somewhere: to a file, and to a heading in it."""

import os
from functools import cache
from pathlib import Path

import pytest
from tests.docs.site import generated_pages
from tests.support.markdown import ROOT, anchors, links, pages


@cache
def anchors_of(page: Path) -> set[str]:
    made = generated_pages().get(page.relative_to(ROOT).as_posix())
    return anchors(page.read_text() if made is None else made)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / name)) if name else page
        is_made = target.is_relative_to(ROOT) and (
            target.relative_to(ROOT).as_posix() in generated_pages()
        )
        is_there = is_made or target.exists()
        if not is_there or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert not broken
