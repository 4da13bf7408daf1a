"""README as a package index shows it: its links lead somewhere there, too.

Hatchling runs this when it builds the package. A relative link leads nowhere outside of the
repository. If `[project.urls]` names the repository as `Source`, links are made absolute by it; if
not, a link becomes its words and the path, which the source distribution has.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")


class LongDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        source = metadata.get("urls", {}).get("Source")
        text = (Path(self.root) / "README.md").read_text()
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": _LINK.sub(lambda link: _elsewhere(link, source), text),
        }


def _elsewhere(link: re.Match[str], source: str | None) -> str:
    words, path, anchor = link.groups()
    if source is None:
        return f"{words} (`{path}`)"
    return f"[{words}]({source.rstrip('/')}/blob/main/{path}{anchor or ''})"
