"""Denials are told, but not without end."""

from semel.core.access.audit import MOST_LINES, MOST_PER_CLIENT, WINDOW_MS, AuditLimit


def denial(name="t", principal="User:a"):
    return principal, "h", "READ", "TOPIC", name


def test_the_same_denial_is_told_once_in_a_while_with_the_number_not_told():
    limit = AuditLimit()
    assert limit.admit(denial(), 0) == 0
    assert [limit.admit(denial(), at) for at in (1, 2, WINDOW_MS - 1)] == [None] * 3
    assert limit.admit(denial(), WINDOW_MS) == 3
    assert limit.admit(denial(), 2 * WINDOW_MS) == 0


def test_one_client_does_not_take_the_lines_of_the_others():
    limit = AuditLimit()
    told = [limit.admit(denial(f"t{number}"), 0) for number in range(1000)]
    assert sum(one is not None for one in told) == MOST_PER_CLIENT
    assert limit.admit(denial(principal="User:b"), 0) is not None


def test_all_clients_together_have_so_many_lines():
    limit = AuditLimit()
    told = [limit.admit(denial(principal=f"User:{number}"), 0) for number in range(1000)]
    assert sum(one is not None for one in told) == MOST_LINES
    assert limit.admit(denial(), WINDOW_MS) == 1000 - MOST_LINES
