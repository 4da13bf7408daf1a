"""A broker as users of `semel.testing` have it, and clients that give up soon."""

from collections.abc import Iterator

import pytest

from semel.testing import Kafka


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka() as kafka:
        yield kafka
