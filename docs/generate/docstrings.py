"""Docstrings as they are written here, made readable for Sphinx.

They are plain text with `names` in backticks and examples that are merely indented. In
reStructuredText an indented block is a quotation; here it is code, so it is announced as such.
"""

from typing import Any


def as_restructured_text(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Sphinx calls this for each docstring; `lines` is changed in place."""
    made: list[str] = []
    in_code = False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        after_blank = number > 0 and not lines[number - 1].strip()
        if indented and after_blank and not in_code:
            made += [".. code-block:: python", ""]
            in_code = True
        elif line.strip() and not indented:
            in_code = False
        made.append(line)
    lines[:] = made
