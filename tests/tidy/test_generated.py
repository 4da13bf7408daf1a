"""Files that are made from others are what would be made now."""

from pathlib import Path

import pytest
from tools.generate import MADE, ROOT, made

from semel.client import blocking


@pytest.mark.parametrize("path", MADE)
def test_a_made_file_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text() == made(path), "run `make generated`"


def test_every_made_file_says_so() -> None:
    assert all("make generated" in Path(ROOT / path).read_text()[:400] for path in MADE)


def test_the_blocking_clients_take_over_what_is_public() -> None:
    """A new method of an asyncio client reaches its twin, or this says which did not."""
    from tools.blocking import CLIENTS

    for client in CLIENTS.values():
        ours = {name for name in dir(client) if not name.startswith("_")}
        twin = getattr(blocking, client.__name__)
        assert ours <= set(dir(twin)), client.__name__
