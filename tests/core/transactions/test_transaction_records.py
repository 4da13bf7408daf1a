"""Records of __transaction_state against bytes that Apache Kafka 4.3.1's TransactionLog wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.core.transactions import records
from semel.core.transactions.states import TxnState
from semel.core.transactions.transaction import Transaction
from semel.wire.records.transaction_state import TransactionLogValue

PAYMENTS = frozenset({("payments", 0)})
TWO = frozenset({("payments", 0), ("payments", 5)})

EMPTY = Transaction(
    "etl-ü", 7, 0, 60_000, TxnState.EMPTY, updated_at_ms=1_000, previous_producer_id=7
)
ONGOING = Transaction(
    "etl-ü", 7, 3, 60_000, TxnState.ONGOING, TWO, 900, 1_000, 7, client_version=2, last_epoch=2
)
ROTATING = Transaction(
    "etl-ü", 7, 32767, 60_000, TxnState.PREPARE_COMMIT, PAYMENTS, 900, 1_000, 7, 8, client_version=2
)
COMPLETE = Transaction(
    "etl-ü", 8, 0, 60_000, TxnState.COMPLETE_COMMIT, frozenset(), 900, 1_001, 7, client_version=2
)

KEY = "0000000665746c2dc3bc"
BY_KAFKA = {
    "empty": (
        EMPTY,
        1,
        "0001000000000000000700000000ea60000000000000000003e8ffffffffffffffff"
        "0100080000000000000007",
    ),
    "empty, version 0": (
        EMPTY,
        0,
        "0000000000000000000700000000ea6000ffffffff00000000000003e8ffffffffffffffff",
    ),
    "rotating": (
        ROTATING,
        1,
        "000100000000000000077fff0000ea600202097061796d656e747302000000000000000000000003e8"
        "000000000000038403000800000000000000070108000000000000000802020002",
    ),
    "complete": (
        COMPLETE,
        1,
        "0001000000000000000800000000ea60040100000000000003e90000000000000384"
        "020008000000000000000702020002",
    ),
}
# Kafka writes a set's partitions in the order of their hashes: 5 before 0.
ONGOING_BY_KAFKA = (
    "0001000000000000000700030000ea600102097061796d656e74730300000005000000000000000000000003e8"
    "0000000000000384020008000000000000000702020002"
)
ONGOING_V0_BY_KAFKA = (
    "0000000000000000000700030000ea60010000000100087061796d656e7473000000020000000500000000"
    "00000000000003e80000000000000384"
)


def as_loaded(txn, version=1):
    """Without what the log has no room for."""
    txn = txn._replace(last_epoch=-1, cause=None)
    if version == 0:
        txn = txn._replace(
            previous_producer_id=-1, next_producer_id=-1, next_epoch=-1, client_version=0
        )
    return txn


@pytest.mark.parametrize("name", ["empty", "rotating", "complete"])
def test_our_bytes_are_kafkas(name):
    txn, _, value = BY_KAFKA[name]
    assert records.encode(txn)[:2] == (bytes.fromhex(KEY), bytes.fromhex(value))


@pytest.mark.parametrize("name", BY_KAFKA)
def test_kafkas_bytes_are_read(name):
    txn, version, value = BY_KAFKA[name]
    decoded = records.decode(bytes.fromhex(KEY), bytes.fromhex(value))
    assert decoded == as_loaded(txn, version)


def test_partitions_are_read_in_any_order():
    key = bytes.fromhex(KEY)
    assert records.decode(key, bytes.fromhex(ONGOING_BY_KAFKA)) == as_loaded(ONGOING)
    assert records.decode(key, bytes.fromhex(ONGOING_V0_BY_KAFKA)) == as_loaded(ONGOING, 0)
    assert sorted(records.encode(ONGOING)[1]) == sorted(bytes.fromhex(ONGOING_BY_KAFKA))


def test_a_dead_id_is_a_tombstone():
    key, value = records.encode(EMPTY._replace(state=TxnState.DEAD))[:2]
    assert value is None
    decoded = records.decode(key, None)
    assert (decoded.transactional_id, decoded.state) == ("etl-ü", TxnState.DEAD)


def test_unknown_versions_are_left_alone():
    key, value = records.encode(EMPTY)[:2]
    assert records.decode(b"\x00\x09" + key[2:], value) is None
    assert records.decode(key, b"\x00\x09" + value[2:]) is None
    assert records.decode(None, value) is None


@given(
    st.builds(
        Transaction,
        st.text(max_size=40),
        st.integers(0, 2**63 - 1),
        st.integers(0, 32767),
        st.integers(1, 2**31 - 1),
        st.sampled_from([state for state in TxnState if state not in (0, 6)]),
        st.frozensets(st.tuples(st.text(max_size=20), st.integers(0, 2**31 - 1)), max_size=6),
        st.integers(-1, 2**62),
        st.integers(-1, 2**62),
        st.integers(-1, 2**62),
        st.integers(-1, 2**62),
        st.integers(-1, 32767),
        st.sampled_from([0, 2]),
    )
)
def test_whatever_is_written_is_read_and_is_what_the_schema_writes(txn):
    key, value = records.encode(txn)[:2]
    assert records.decode(key, value) == as_loaded(txn)
    by_schema = bytearray(value[:2])
    TransactionLogValue.decode(value, 2, 1)[0].encode(by_schema, 1)
    assert value == by_schema
