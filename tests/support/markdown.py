"""The repository's Markdown as tests see it: pages, their code blocks, links and anchors."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_parser = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A fenced code block: where it begins, its language, and the comment right above it."""

    page: Path
    line: int
    language: str
    text: str
    comment: str = ""

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown file that people write; those that the site makes are not in git."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for line in listing.stdout.splitlines() if (path := ROOT / line).is_file()]


def blocks(page: Path) -> Iterator[Block]:
    comment = ""
    for token in _parser.parse(page.read_text()):
        if token.type == "html_block" and (found := _COMMENT.fullmatch(token.content.strip())):
            comment = found[1]
        elif token.type == "fence":
            assert token.map is not None
            yield Block(page, token.map[0] + 1, token.info.strip(), token.content, comment)
            comment = ""
        elif token.level == 0:
            comment = ""


def links(page: Path) -> Iterator[str]:
    """Where the page's links and pictures lead."""
    for token in _inline(_parser.parse(page.read_text())):
        target = token.attrGet("href") or token.attrGet("src")
        if isinstance(target, str):
            yield target


def anchors(text: str) -> set[str]:
    """What `#` may name in a page: its headings, as code hosts and the site spell them, and ids."""
    found = set(re.findall(r"\{#([\w-]+)\}", text))
    tokens = _parser.parse(text)
    for token, content in pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(each.content for each in content.children or ())
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found.add(slug)
    return found


def _inline(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _inline(token.children or [])
