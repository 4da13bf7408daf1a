"""Pages that live beside `docs/` in the repository, and links between them and the site's.

The map, the changelog and others belong to the root, where a code host shows them. The site has
them as pages too; a link to `../ARCHITECTURE.md` in one of its pages then leads to that page.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from generate.results import with_results

#: File of the repository → page of the site.
ROOT_PAGES = {
    "ARCHITECTURE.md": "architecture",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "benchmarks/README.md": "benchmarks",
}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?(?=\))")


def root_page(root: Path, file: str) -> str:
    """The file as a page of `docs/`, its links made to fit."""
    return relinked((root / file).read_text(), file, f"docs/{ROOT_PAGES[file]}.md")


def relinked(text: str, written_in: str, shown_in: str) -> str:
    """The text of one file with its links as another file needs them; paths of the repository."""

    def link(found: re.Match[str]) -> str:
        target = _joined(written_in, found[1])
        if target in ROOT_PAGES:
            target = f"docs/{ROOT_PAGES[target]}.md"
        return os.path.relpath(target, PurePosixPath(shown_in).parent) + (found[2] or "")

    return _LINK.sub(link, text)


def _joined(file: str, link: str) -> str:
    return os.path.normpath(PurePosixPath(file).parent / link)


#: What Sphinx needs to know of the folder's order, and a code host would show as it stands.
_DECISIONS = "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def relink(app: Any, page: str, source: list[str]) -> None:
    """Sphinx calls this with the text of each page, to be changed in place."""
    if page not in ROOT_PAGES.values():
        source[0] = relinked(source[0], f"docs/{page}.md", f"docs/{page}.md")
    source[0] = with_results(source[0])
    if page == "decisions/README":
        source[0] += _DECISIONS
