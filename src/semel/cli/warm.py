"""`semel warm`: compiles the columnar kernels for this machine ahead of their first use."""

import argparse
import sys
import time
from pathlib import Path

from semel.cli.commands import CommandTable, Option
from semel.cli.exits import Exit, usage


def run(arguments: argparse.Namespace) -> int:
    try:
        from semel.columnar import cache, compiled
    except ImportError as missing:
        raise usage(f"{missing.name} is missing: pip install 'semel[arrow]'") from None
    was_warm = cache.is_complete()
    began = time.monotonic()
    compiled.observers.append(_show)
    from semel.columnar import kernels

    kernels.load()
    seconds = time.monotonic() - began
    done = "were compiled before" if was_warm else f"compiled in {seconds:.1f} s"
    print(f"Kernels {done}: {cache.directory()}")
    if not arguments.keep:
        _tell_removed(cache.remove_outdated())
    return Exit.DONE


def _show(kernel: str) -> None:
    print(f"  {kernel.replace('_', ' ')}", file=sys.stderr)


def _tell_removed(removed: list[Path]) -> None:
    for path in removed:
        print(f"Removed {path.name}, of another version")


COMMAND = CommandTable(
    run=run,
    options=(Option("--keep", "keep kernels of other versions, which are removed otherwise"),),
    notes="They are kept in SEMEL_CACHE of the environment, else in the user's cache directory.",
)
