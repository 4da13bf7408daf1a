"""What a type checker and an editor know of the public surface: all of it, and the truth.

mypy and pyright read, as a strict user would have them do: programs that touch every public call,
the examples, and every Python snippet of the documentation.
"""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.support.markdown import ROOT
from tests.support.snippets import PYTEST, snippets

import semel
from semel import client, errors, testing
from semel.client import blocking

HERE = Path(__file__).parent
PROGRAMS = ("asyncio_program", "blocking_program", "spark_program", "testing_program")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
Check = Callable[[Path, Path], str]
# The names of others' libraries are theirs to explain; ours are in this repository.
MYPY = """
[mypy]
strict = True
ignore_missing_imports = True
mypy_path = {source}
cache_dir = {cache}
[mypy-semel.*]
follow_imports = silent
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs and snippets as files of one directory."""
    directory = tmp_path_factory.mktemp("written")
    for program in PROGRAMS:
        (directory / f"{program}.py").write_text((HERE / f"{program}.py").read_text())
    for path in EXAMPLES:
        (directory / f"example_{path.name}").write_text(path.read_text())
    for number, snippet in enumerate(snippets("python")):
        if not _is_of_others(snippet.program):
            place = f"{snippet.block.page.stem.replace('-', '_')}_{number}.py"
            (directory / f"snippet_{place}").write_text(snippet.program)
    assert len(list(directory.glob("snippet_*"))) > 20
    return directory


def _is_of_others(program: str) -> bool:
    """The moving guides show what one moves from, too."""
    return any(f"import {name}" in program or f"from {name}" in program
               for name in ("kafka", "aiokafka", "confluent_kafka"))  # fmt: skip


def by_mypy(directory: Path, cache: Path) -> str:
    """What mypy has to say of the directory's files, as a strict user runs it."""
    configuration = cache / "mypy.ini"
    configuration.write_text(MYPY.format(source=ROOT / "src", cache=cache))
    files = sorted(path.name for path in directory.glob("*.py"))
    command = [sys.executable, "-m", "mypy", "--config-file", str(configuration), *files]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode else ""


def by_pyright(directory: Path, cache: Path) -> str:
    """The same by pyright. basedpyright brings its own node: nothing is fetched when it runs."""
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT / "src")]}
    (directory / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "."]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode else ""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_type_checkers_are_content_with_all_that_users_are_shown(
    check: Check, written: Path, cache: Path
) -> None:
    assert check(written, cache) == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_type_checkers_find_what_users_get_wrong(check: Check, tmp_path: Path, cache: Path) -> None:
    program = (HERE / "mistakes.txt").read_text()
    (tmp_path / "mistakes.py").write_text(program)
    told = {int(line) for line in re.findall(r"mistakes\.py:(\d+):.*error", check(tmp_path, cache))}
    lines = enumerate(program.splitlines(), start=1)
    assert told == {number for number, line in lines if line.endswith("# wrong")}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["asyncio_program", "blocking_program", "testing_program"])
def test_the_program_that_touches_everything_works(program: str) -> None:
    by = PYTEST if program == "testing_program" else []
    done = subprocess.run(
        [sys.executable, *by, str(HERE / f"{program}.py")],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _names(program: str) -> set[str]:
    """Every name that a program uses: of variables, attributes, imports and keywords."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((HERE / f"{program}.py").read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
    return found


def _public_calls(module: object, names: list[str]) -> Iterator[str]:
    for name in names:
        yield name
        value = getattr(module, name)
        if inspect.isclass(value) and not issubclass(value, tuple | dict | Exception):
            yield from (each for each in vars(value) if _is_call(each, getattr(value, each)))


def _is_call(name: str, value: object) -> bool:
    return not name.startswith("_") and (callable(value) or isinstance(value, property))


@pytest.mark.parametrize(
    ("program", "module"),
    [("asyncio_program", client), ("blocking_program", blocking), ("testing_program", testing)],
)
def test_the_program_touches_every_public_name_and_call(program: str, module: object) -> None:
    names: list[str] = module.__all__  # type: ignore[attr-defined]
    missing = set(_public_calls(module, names)) - _names(program)
    assert not missing - set(errors.__all__)


def test_the_pipeline_touches_every_public_name_and_option_of_spark() -> None:
    spark = ast.parse((ROOT / "src/semel/spark/__init__.py").read_text())
    public = next(
        ast.literal_eval(node.value)
        for node in spark.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PUBLIC"
    )
    assert set(public) <= _names("spark_program")


def test_every_error_is_caught_by_one_of_the_programs() -> None:
    caught = set().union(*map(_names, PROGRAMS))
    assert set(errors.__all__) <= caught


@pytest.mark.parametrize(
    "package", ["semel", "semel.client", "semel.client.blocking", "semel.spark", "semel.testing"]
)
def test_a_notebook_is_told_what_is_public_before_it_is_used(package: str) -> None:
    module = import_module(package)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nothing'"):
        module.Nothing  # noqa: B018


@pytest.mark.parametrize("module", [semel, client, blocking, testing])
def test_type_checkers_are_told_what_is_public(module: object) -> None:
    told = {
        line.split()[-1]
        for line in inspect.getsource(module).splitlines()  # type: ignore[arg-type]
        if line.startswith("    from semel.")
    }
    public: list[str] = module.__all__  # type: ignore[attr-defined]
    assert told == set(public) - {"__version__"}
    assert all(getattr(module, name) for name in public)


@pytest.mark.parametrize("module", [client, blocking, testing])
def test_every_public_call_is_typed_and_explained(module: object) -> None:
    """No `**more: Any`: an editor could complete nothing."""
    wrong = []
    for name in module.__all__:  # type: ignore[attr-defined]
        value = getattr(module, name)
        calls = {name: value}
        if inspect.isclass(value):
            calls |= {f"{name}.{each}": call for each, call in inspect.getmembers(value)
                      if not each.startswith("_") and inspect.isfunction(call)}  # fmt: skip
        for label, call in calls.items():
            if not inspect.getdoc(call):
                wrong.append(f"{label} has no docstring")
            if inspect.isfunction(call) and _takes_anything(call):
                wrong.append(f"{label} takes keywords without types")
    assert not wrong


def _takes_anything(call: object) -> bool:
    parameters = inspect.signature(call).parameters.values()  # type: ignore[arg-type]
    return any(p.kind is p.VAR_KEYWORD and "Unpack" not in str(p.annotation) for p in parameters)
