"""The map of ARCHITECTURE.md holds: imports point one way, and what is pure stays pure."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "semel"

# Each layer may import itself and what is named here, and nothing else of ours.
MAY_IMPORT = {
    "wire": set(),
    "columnar": {"wire"},
    "core": {"wire"},
    "store": {"wire"},
    "net": {"wire"},
    "broker": {"wire", "core", "store", "net"},
    "client": {"wire", "columnar", "net"},
    "spark": {"wire", "columnar", "net", "client"},
    "demo": {"columnar", "broker", "client", "spark"},
    "audit": {"wire", "client", "spark"},
    "testing": {"wire", "core", "store", "net", "broker", "client", "audit"},
    "cli": {"wire", "columnar", "net", "broker", "client", "spark", "demo", "audit", "testing"},
}

# A decision that reads a clock or rolls a die cannot be replayed.
IMPURE = {
    "asyncio",
    "os",
    "random",
    "secrets",
    "select",
    "socket",
    "subprocess",
    "threading",
    "time",
}

# The base install has none of these: only these places may import them.
HEAVY = {
    "numpy": {"columnar", "spark", "client"},
    "numba": {"columnar", "spark"},
    "pyarrow": {"columnar", "spark", "client", "demo"},
    "pyspark": {"spark", "demo", "audit"},
    "jwt": {"broker/access/tokens"},
    "cryptography": {"broker/access/tokens"},
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_imports_point_down_the_map_only(layer: str) -> None:
    allowed = MAY_IMPORT[layer] | {layer}
    wrong = {
        f"{name} imports {imported}"
        for name, tree in modules()
        if name.startswith(f"{layer}/")
        for imported in imports(tree)
        if imported.startswith("semel.") and imported.split(".")[1] in MAY_IMPORT.keys() - allowed
    }
    assert not wrong


@pytest.mark.parametrize("layer", ["wire", "core", "client/machines"])
def test_pure_layers_touch_no_clock_socket_disk_or_dice(layer: str) -> None:
    wrong = {
        f"{name} imports {imported}"
        for name, tree in modules()
        if name.startswith(f"{layer}/")
        for imported in imports(tree)
        if imported.split(".")[0] in IMPURE
    }
    assert not wrong


def test_heavy_libraries_stay_in_their_places() -> None:
    wrong = {
        f"{name} imports {imported}"
        for name, tree in modules()
        for imported in imports(tree)
        if (places := HEAVY.get(imported.split(".")[0])) is not None
        and not any(name.startswith(place) for place in places)
    }
    assert not wrong


def test_an_api_handler_is_named_by_its_key_and_says_what_it_is() -> None:
    for name, tree in modules():
        if not name.startswith("broker/api/k"):
            continue
        key = int(Path(name).stem[1:3])
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        assert ast.literal_eval(constants["API_KEY"]) == key, name
        assert (ast.get_docstring(tree) or "").strip(), f"{name} has no docstring"


def test_the_map_says_what_each_package_may_import() -> None:
    page = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ?(.*?) ?\|$", page, re.MULTILINE)
    drawn = {package: set(re.findall(r"`(\w+)`", allowed)) for package, allowed in rows}
    assert drawn == {layer: allowed for layer, allowed in MAY_IMPORT.items() if layer != "cli"} | {
        "cli": set()  # its row says: all
    }


#: Folders of which all modules are of one kind: an API, a message, a command each.
ALIKE = {"broker/api", "wire/messages", "cli"}


def test_no_folder_holds_too_many_unlike_modules() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    sizes = {
        folder.relative_to(SOURCE).as_posix(): len(list(folder.glob("[!_]*.py")))
        for folder in folders
    }
    assert {name: size for name, size in sizes.items() if size > 16 and name not in ALIKE} == {}
