"""`make docs` builds a whole site that needs nobody else's computer."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.docs.site import build

pytestmark = pytest.mark.slow
# Where a browser fetches something by itself, in contrast to a link that a reader may follow.
_LOADED_BY_CSS = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)")


class Page(HTMLParser):
    """What a page loads, links to, and can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids.add(values.get("id", ""))
        if tag in ("a", "area"):
            self.links.append(values.get("href", ""))
        else:
            self.loads += [values[name] for name in ("src", "srcset", "href") if name in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def html(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_nothing_is_loaded_from_another_host(site: Path, html: dict[Path, Page]) -> None:
    foreign = {load for page in html.values() for load in page.loads if urlsplit(load).netloc}
    for path in (*site.rglob("*.css"), *site.rglob("*.svg"), *site.rglob("*.html")):
        foreign |= set(_LOADED_BY_CSS.findall(path.read_text()))
    assert not foreign


def test_links_and_anchors_of_the_built_pages_are_there(html: dict[Path, Page]) -> None:
    assert not sorted(f"{path.name} → {link}" for path, link in broken(html))


def broken(html: dict[Path, Page]) -> Iterator[tuple[Path, str]]:
    for path, page in html.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment) if target in html else ""
            if not target.exists() or (anchor and anchor not in html[target].ids):
                yield path, link


def test_every_page_can_be_found_from_the_first_one(site: Path, html: dict[Path, Page]) -> None:
    found, ahead = set(), [(site / "index.html").resolve()]
    while ahead:
        path = ahead.pop()
        if path in found or path not in html:
            continue
        found.add(path)
        for link in html[path].links:
            if not urlsplit(link).netloc and (name := urlsplit(link).path):
                ahead.append((path.parent / unquote(name)).resolve())
    assert not {path.name for path in html.keys() - found} - {"genindex.html", "search.html"}
