"""Packages whose public names are loaded when first used: importing them costs next to nothing.

if not TYPE_CHECKING:  # a checker that saw it would believe in any name
    __getattr__, __dir__ = lazy(__name__, _PUBLIC)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from semel.extras import needs_extra


def lazy(
    package: str, public: Mapping[str, str], extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`. `public` says which module has a name; `extra` is
    what the installation must have for it."""

    def load(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if extra is None:
            value = getattr(import_module(public[name]), name)
        else:
            with needs_extra(extra, f"{package}.{name}"):
                value = getattr(import_module(public[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return load, names
