"""Small pieces of Markdown that several pages are made of."""

import re


def entry(name: str, *paragraphs: str, anchor: str | None = None) -> str:
    """One item of a definition list, which a link can point to."""
    lines = [f"[`{name}`]{{#{anchor or slug(name)}}}"]
    lines += [f": {paragraph}" for paragraph in paragraphs if paragraph]
    return "\n".join(lines) + "\n"


def slug(name: str) -> str:
    """`log.retention.ms` → `log-retention-ms`."""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")


def code(text: str) -> str:
    return f"`{text}`"


def facts(*known: str) -> str:
    """Short facts on one line; empty ones are left out."""
    return " · ".join(fact for fact in known if fact)
