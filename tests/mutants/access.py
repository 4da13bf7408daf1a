"""Drops every question about access in turn, and swaps its operation: some test must notice.

`make mutants` runs it; the rules are those of `run.py` beside it. The mutants are made from the
handlers' text, so that a new question is among them without being written down here.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from run import ROOT, Mutant, main

JUDGES = {"matrix": ["tests/broker/test_access_matrix.py", "tests/broker/test_acls_api.py"]}
ASKED = re.compile(r'(ctx\.may(?:_quietly|_any)?|require_cluster)(\((?:ctx, |\s*))"([A-Z_]+)"')
SOURCES = ("api", "access", "partitions", "settings", "coordinators", "operations.py")


def questions() -> Iterator[Mutant]:
    for part in SOURCES:
        place = ROOT / "src" / "semel" / "broker" / part
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield from mutants_of(file)


def mutants_of(file: Path) -> Iterator[Mutant]:
    text = file.read_text()
    name = str(file.relative_to(ROOT / "src"))
    for number, found in enumerate(ASKED.finditer(text), 1):
        call, opening, operation = found.groups()
        start, end = found.span()
        where = f"{file.stem}, question {number} ({operation})"
        dropped = f'(lambda *asked: True){opening}"{operation}"'
        yield Mutant(f"dropped: {where}", name, text, text[:start] + dropped + text[end:])
        other = "CLUSTER_ACTION" if operation != "CLUSTER_ACTION" else "ALTER"
        swapped = f'{call}{opening}"{other}"'
        yield Mutant(f"swapped: {where}", name, text, text[:start] + swapped + text[end:])


MUTANTS = tuple(questions())

if __name__ == "__main__":
    wanted = [one for one in MUTANTS if not sys.argv[1:] or sys.argv[1] in one.sin]
    sys.exit(main(wanted, JUDGES))
