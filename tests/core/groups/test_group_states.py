"""The tables of states say what Kafka says."""

from semel.core.groups.states import CAN_REBALANCE, CLASSIC_MOVES, MEMBER_MOVES, ClassicState

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicState


def test_the_moves_of_a_classic_group_are_kafkas():
    moves = {(old, new) for old, targets in CLASSIC_MOVES.items() for new in targets}
    assert moves == {
        (PREPARING, EMPTY),
        (STABLE, PREPARING),
        (COMPLETING, PREPARING),
        (EMPTY, PREPARING),
        (PREPARING, COMPLETING),
        (COMPLETING, STABLE),
        *((state, DEAD) for state in ClassicState),
    }


def test_a_rebalance_can_begin_wherever_none_is_gathering():
    assert {EMPTY, COMPLETING, STABLE} == CAN_REBALANCE


def test_every_member_state_has_its_moves():
    assert all(MEMBER_MOVES.values())
