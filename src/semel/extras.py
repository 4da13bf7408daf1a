"""Extras of the installation: who needs one that is not there is told how to get it."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs_extra(name: str, what: str) -> Iterator[None]:
    """Around imports: `what` needs the extra `name`."""
    try:
        yield
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module == "semel":
            raise  # a mistake of ours, not of the installation
        raise ImportError(
            f'{what} needs {module}, which is not installed: pip install "semel[{name}]"',
            name=missing.name,
        ) from None
