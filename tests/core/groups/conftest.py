"""A coordinator on the bench, with a topic `t` of four partitions."""

import pytest
from tests.support.groups.bench import GroupBench


@pytest.fixture
def bench() -> GroupBench:
    return GroupBench(t=4)
