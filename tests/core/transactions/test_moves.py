"""The next value of a transaction, made by hand for speed, is what `_replace` would make."""

from hypothesis import given
from hypothesis import strategies as st

from semel.core.transactions.states import MOVES, TxnState
from semel.core.transactions.transaction import Cause, Transaction

numbers = st.integers(-1, 9)
transactions = st.builds(
    Transaction,
    st.text(max_size=5),
    producer_id=numbers,
    epoch=numbers,
    timeout_ms=numbers,
    state=st.sampled_from([state for state in TxnState if MOVES.get(state)]),
    partitions=st.frozensets(st.tuples(st.text(max_size=2), numbers), max_size=2),
    started_at_ms=numbers,
    updated_at_ms=numbers,
    previous_producer_id=numbers,
    next_producer_id=numbers,
    next_epoch=numbers,
    client_version=st.sampled_from([0, 2]),
    last_epoch=numbers,
    cause=st.none() | st.builds(Cause, numbers, numbers, st.text(max_size=3)),
)
FREE = ("epoch", "producer_id", "next_epoch", "next_producer_id", "started_at_ms", "last_epoch")


@given(transactions, st.data(), st.dictionaries(st.sampled_from(FREE), numbers), numbers)
def test_a_move_changes_what_it_names_its_time_and_where_it_came_from(txn, data, changes, now_ms):
    state = data.draw(st.sampled_from(sorted(MOVES[txn.state])))
    expected = txn._replace(
        state=state, updated_at_ms=now_ms, previous_producer_id=txn.producer_id, cause=None
    )._replace(**changes)
    moved = txn.moved(state, now_ms, **changes)
    assert moved == expected
    assert type(moved) is Transaction
