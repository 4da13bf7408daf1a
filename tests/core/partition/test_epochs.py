"""Where a leader epoch ended, and who is told that his is over."""

import pytest

from semel.core.partition.epochs import epoch_end, epoch_refusal

EPOCHS = [(2, 0), (4, 10), (7, 30)]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 0)),
        (1, (1, 0)),
        (2, (2, 10)),
        (3, (2, 10)),
        (4, (4, 30)),
        (6, (4, 30)),
        (7, (7, 99)),
        (8, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(asked, answer):
    assert epoch_end(EPOCHS, asked, log_end=99) == answer


def test_without_epochs_nothing_is_known():
    assert epoch_end([], 0, log_end=5) == (-1, -1)


def test_a_client_with_older_metadata_is_fenced_and_one_with_newer_must_wait():
    assert epoch_refusal(4, current=5).error.name == "FENCED_LEADER_EPOCH"
    assert epoch_refusal(6, current=5).error.name == "UNKNOWN_LEADER_EPOCH"
    assert epoch_refusal(5, current=5) is None
    assert epoch_refusal(-1, current=5) is None
