"""The tables of states say what Kafka says, and the document shows them."""

from pathlib import Path

from semel.core.groups.states import (
    CAN_REBALANCE,
    CLASSIC_MOVES,
    MEMBER_MOVES,
    ClassicState,
    classic_mermaid,
    member_mermaid,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "group-states.md"
EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicState


def test_the_document_shows_the_diagrams_drawn_from_the_tables():
    drawn = [part.split("\n```")[0] for part in DOCUMENT.read_text().split("```mermaid\n")[1:]]
    assert drawn == [classic_mermaid(), member_mermaid()], "paste what these functions return"


def test_the_moves_of_a_classic_group_are_kafkas():
    moves = {(old, new) for old, targets in CLASSIC_MOVES.items() for new in targets}
    assert moves == {
        (PREPARING, EMPTY),
        (STABLE, PREPARING),
        (COMPLETING, PREPARING),
        (EMPTY, PREPARING),
        (PREPARING, COMPLETING),
        (COMPLETING, STABLE),
    }


def test_a_rebalance_can_begin_wherever_none_is_gathering():
    assert {EMPTY, COMPLETING, STABLE} == CAN_REBALANCE
    assert CLASSIC_MOVES[DEAD] == frozenset()


def test_no_member_is_stuck():
    assert all(MEMBER_MOVES.values())
