"""A name means one thing: no two classes of the package share one."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "semel"

# The blocking clients are the asyncio ones without `await`, and are named alike on purpose.
TWINS = "client/blocking"


def test_classes_have_names_of_their_own() -> None:
    """Classes inside a message are Kafka's and belong to it: only those of modules count."""
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    assert not {
        name: found for name, found in places.items() if len(found) > 1 and not twins(found)
    }


def twins(modules: list[str]) -> bool:
    """One of the asyncio client, one of the blocking client."""
    blocking = [module for module in modules if module.startswith(TWINS)]
    asyncio = [module for module in modules if module not in blocking]
    return len(blocking) == len(asyncio) == 1 and all(
        place.startswith("client/") for place in asyncio
    )
