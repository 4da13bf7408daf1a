"""The table of moves, and the document drawn from it."""

from pathlib import Path

from semel.core.transactions.states import CAUSES, DEAD, MOVES, PREPARED, TxnState, mermaid

DOCUMENT = Path(__file__).parents[3] / "docs" / "transaction-states.md"


def test_the_document_shows_the_diagram_drawn_from_the_table():
    text = DOCUMENT.read_text()
    drawn = text.split("```mermaid\n")[1].split("\n```")[0]
    assert drawn == mermaid(), "paste the output of semel.core.transactions.states.mermaid()"


def test_every_move_has_a_cause_and_every_cause_a_move():
    assert {(before, after) for before in MOVES for after in MOVES[before]} == set(CAUSES)


def test_a_prepared_transaction_has_one_way_out():
    for state in PREPARED:
        assert len(MOVES[state]) == 1


def test_every_state_can_be_reached_and_all_but_the_last_left():
    reached = set().union(*MOVES.values())
    assert reached == set(TxnState)
    assert [state for state in TxnState if not MOVES[state]] == [DEAD]
