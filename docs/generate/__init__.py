"""The pages of the site that are made when it is built, and so cannot be out of date.

The reference comes from the program's own tables, others from the repository's root. All of them
are written beside the pages of `docs/` and ignored by git.
"""

from pathlib import Path

from generate import apis, client_settings, commands, errors, python_api, settings
from generate.root_pages import ROOT_PAGES, root_page


def pages(docs: Path) -> dict[str, str]:
    """Name → text, of all that are made."""
    reference = {
        "reference/apis": apis.page(),
        "reference/broker-settings": settings.of_brokers(),
        "reference/client-settings": client_settings.page(),
        "reference/command-line": commands.page(),
        "reference/errors": errors.page(),
        "reference/topic-settings": settings.of_topics(),
    }
    python = {f"reference/{name}": python_api.page(name) for name in python_api.PAGES}
    from_root = {page: root_page(docs.parent, file) for file, page in ROOT_PAGES.items()}
    return reference | python | from_root


def write_pages(docs: Path) -> None:
    for name, text in pages(docs).items():
        path = docs / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
