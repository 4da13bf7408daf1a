"""The rule book decides as a slow twin does that looks at every rule each time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from semel.core.access.authorizer import Authorizer
from semel.core.access.rule_book import RuleBook
from semel.core.access.rules import Rule
from semel.wire.acls import ALL, ALLOW, DENY, LITERAL, PREFIXED

NAMES = ("*", "a", "ab", "abc", "b", "hard", "hardcode")
PRINCIPALS = ("User:a", "User:b", "User:*")
HOSTS = ("1.1.1.1", "2.2.2.2", "*")
OPERATIONS = ("READ", "WRITE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
TYPES = ("TOPIC", "GROUP")

rules = st.builds(
    Rule,
    st.sampled_from(TYPES),
    st.sampled_from(NAMES),
    st.sampled_from((LITERAL, PREFIXED)),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from((*OPERATIONS, ALL)),
    st.sampled_from((ALLOW, DENY)),
)
questions = st.tuples(
    st.sampled_from(PRINCIPALS[:2]),
    st.sampled_from(HOSTS[:2]),
    st.sampled_from(OPERATIONS),
    st.sampled_from(TYPES),
    st.sampled_from((*NAMES, "abcd", "")),
)


def slow_may(book, default, principal, host, operation, kind, name) -> bool:
    named = [
        rule
        for rule in book
        if rule.resource_type == kind
        and (name.startswith(rule.name) if rule.pattern == PREFIXED else rule.name in (name, "*"))
    ]
    if not named:
        return default
    mine = [
        rule
        for rule in named
        if rule.principal in (principal, "User:*") and rule.host in (host, "*")
    ]
    if any(rule.permission == DENY and rule.operation in (operation, ALL) for rule in mine):
        return False
    enough = {operation, ALL}
    if operation == "DESCRIBE":
        enough |= {"READ", "WRITE", "ALTER", "DELETE"}
    if operation == "DESCRIBE_CONFIGS":
        enough |= {"ALTER_CONFIGS"}
    return any(rule.permission == ALLOW and rule.operation in enough for rule in mine)


def slow_may_any(book, default, principal, host, operation, kind) -> bool:
    if slow_may(book, default, principal, host, operation, kind, "hardcode"):
        return True
    mine = [
        rule
        for rule in book
        if rule.resource_type == kind
        and rule.principal in (principal, "User:*")
        and rule.host in (host, "*")
        and rule.operation in (operation, ALL)
    ]
    denials = [rule for rule in mine if rule.permission == DENY]
    for rule in mine:
        if rule.permission == DENY:
            continue
        covering = [
            denial
            for denial in denials
            if (denial.pattern, denial.name) == (LITERAL, "*")
            or (denial.pattern, denial.name) == (LITERAL, rule.name) == (rule.pattern, rule.name)
            or (
                denial.pattern == PREFIXED
                and rule.name.startswith(denial.name)
                and (rule.pattern, rule.name) != (LITERAL, "*")
            )
        ]
        if not covering:
            return True
    return False


@settings(max_examples=300)
@given(st.lists(rules, max_size=12), st.data(), st.booleans())
def test_a_book_that_changes_decides_as_its_slow_twin(first, data, default):
    book = RuleBook()
    authorizer = Authorizer(book, allow_if_no_rule=default)
    twin: list[Rule] = []
    for rule in first:
        if rule in twin and data.draw(st.booleans()):
            twin.remove(rule)
            book.remove(rule)
        elif rule not in twin:
            twin.append(rule)
            book.add(rule)
        for question in data.draw(st.lists(questions, max_size=4)):
            principal, host, operation, kind, name = question
            caller = authorizer.caller(principal, host)
            for _ in range(2):  # the second time it may be remembered
                assert caller.may(operation, kind, name) == slow_may(twin, default, *question)
            assert caller.may_any(operation, kind) == slow_may_any(twin, default, *question[:4])
    assert list(book) == twin
    for rule in list(book):
        book.remove(rule)
    assert not any((book._rules, book._literals, any(book._prefixes.values())))
