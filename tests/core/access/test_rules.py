"""Which rule decides: Kafka's StandardAuthorizer, one sentence at a time."""

import pytest

from semel.core.access.authorizer import Authorizer, java_address
from semel.core.access.rule_book import RuleBook
from semel.core.access.rules import Rule, RuleFilter
from semel.wire.acls import (
    ALL,
    ALLOW,
    ANY,
    DENY,
    LITERAL,
    MATCH,
    OPERATION_CODES,
    OPERATIONS,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    PREFIXED,
    RESOURCE_TYPE_CODES,
    word,
)

ALICE, HERE = "User:alice", "10.0.0.1"


def rule(
    operation="READ",
    name="orders",
    pattern=LITERAL,
    principal=ALICE,
    host="*",
    permission=ALLOW,
    kind="TOPIC",
) -> Rule:
    return Rule(kind, name, pattern, principal, host, operation, permission)


def alice(*rules: Rule, host=HERE, **settings):
    return Authorizer(RuleBook(rules), **settings).caller(ALICE, host)


def test_without_a_rule_nothing_is_allowed():
    assert not alice().may("READ", "TOPIC", "orders")


def test_where_no_rule_names_a_resource_everybody_may_if_the_setting_says_so():
    caller = alice(rule(principal="User:bob"), allow_if_no_rule=True)
    assert caller.may("READ", "TOPIC", "other")
    assert not caller.may("READ", "TOPIC", "orders")
    assert not alice(rule(name="*", principal="User:bob"), allow_if_no_rule=True).may(
        "READ", "TOPIC", "other"
    )
    assert not alice(
        rule(name="o", pattern=PREFIXED, principal="User:bob"), allow_if_no_rule=True
    ).may("READ", "TOPIC", "other")


def test_a_super_user_may_do_what_is_denied():
    caller = alice(rule(permission=DENY), super_users=[ALICE])
    assert caller.may("READ", "TOPIC", "orders")
    assert caller.may_any("READ", "TOPIC")


@pytest.mark.parametrize("name", ["order", "orders", "orders2", "Orders", ""])
def test_a_literal_rule_names_one_resource(name):
    assert alice(rule()).may("READ", "TOPIC", name) == (name == "orders")


def test_a_rule_is_about_one_type_of_resource():
    assert not alice(rule()).may("READ", "GROUP", "orders")


@pytest.mark.parametrize("name", ["ord", "orde", "orders", "or", "xord"])
def test_a_prefix_names_what_begins_so(name):
    caller = alice(rule(name="ord", pattern=PREFIXED))
    assert caller.may("READ", "TOPIC", name) == name.startswith("ord")


def test_a_star_names_everything_as_a_literal_and_only_itself_as_a_prefix():
    assert alice(rule(name="*")).may("READ", "TOPIC", "orders")
    assert not alice(rule(name="*", pattern=PREFIXED)).may("READ", "TOPIC", "orders")


@pytest.mark.parametrize("denial", [
    rule(permission=DENY), rule(permission=DENY, name="*"),
    rule(permission=DENY, principal="User:*"),
    rule(permission=DENY, name="ord", pattern=PREFIXED), rule(permission=DENY, operation=ALL),
    rule(permission=DENY, host=HERE),
])  # fmt: skip
def test_a_denial_wins(denial):
    allowed = [rule(), rule(name="*"), rule(operation=ALL), rule(name="o", pattern=PREFIXED)]
    assert alice(*allowed).may("READ", "TOPIC", "orders")
    assert not alice(*allowed, denial).may("READ", "TOPIC", "orders")
    assert not alice(denial, *allowed).may("READ", "TOPIC", "orders")


def test_a_rule_holds_for_its_host():
    assert alice(rule(host=HERE)).may("READ", "TOPIC", "orders")
    assert not alice(rule(host="10.0.0.2")).may("READ", "TOPIC", "orders")


def test_everybody_is_called_star():
    assert alice(rule(principal="User:*")).may("READ", "TOPIC", "orders")
    assert not alice(rule(principal="*")).may("READ", "TOPIC", "orders")
    assert not alice(rule(principal="Group:*")).may("READ", "TOPIC", "orders")


@pytest.mark.parametrize("given", OPERATIONS[3:])
def test_whoever_may_touch_may_look(given):
    caller = alice(rule(given))
    looks = {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"}
    assert caller.may("DESCRIBE", "TOPIC", "orders") == (given in looks)
    configs = {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    assert caller.may("DESCRIBE_CONFIGS", "TOPIC", "orders") == (given in configs)


def test_who_may_not_touch_may_still_look():
    caller = alice(rule("DESCRIBE"), rule("READ", permission=DENY))
    assert caller.may("DESCRIBE", "TOPIC", "orders")


def test_all_covers_every_operation():
    caller = alice(rule(ALL))
    assert all(caller.may(operation, "TOPIC", "orders") for operation in OPERATIONS[3:])


# Any resource of a type


def test_some_topic_may_be_written_to_if_a_pattern_says_so():
    assert not alice().may_any("WRITE", "TOPIC")
    assert alice(rule("WRITE")).may_any("WRITE", "TOPIC")
    assert alice(rule("WRITE", name="o", pattern=PREFIXED)).may_any("WRITE", "TOPIC")
    assert alice(rule("WRITE", name="*")).may_any("WRITE", "TOPIC")
    assert not alice(rule("WRITE", kind="GROUP")).may_any("WRITE", "TOPIC")
    assert not alice(rule("WRITE", principal="User:bob")).may_any("WRITE", "TOPIC")
    assert not alice(rule("WRITE", host="10.0.0.2")).may_any("WRITE", "TOPIC")


def test_no_operation_implies_another_for_some_topic():
    assert not alice(rule("READ")).may_any("DESCRIBE", "TOPIC")


def test_a_pattern_that_is_wholly_denied_is_no_pattern():
    literal = rule("WRITE")
    assert not alice(literal, rule("WRITE", permission=DENY)).may_any("WRITE", "TOPIC")
    prefixed = rule("WRITE", name="ord", pattern=PREFIXED)
    over = rule("WRITE", name="or", pattern=PREFIXED, permission=DENY)
    under = rule("WRITE", name="orde", pattern=PREFIXED, permission=DENY)
    assert not alice(literal, over).may_any("WRITE", "TOPIC")
    assert not alice(prefixed, over).may_any("WRITE", "TOPIC")
    assert alice(prefixed, under).may_any("WRITE", "TOPIC")
    everything = rule("WRITE", name="*", permission=DENY)
    assert not alice(literal, prefixed, rule("WRITE", name="*"), everything).may_any(
        "WRITE", "TOPIC"
    )
    assert alice(rule("WRITE", name="*"), over).may_any("WRITE", "TOPIC")


def test_some_topic_may_be_written_to_where_everybody_may_without_a_rule():
    assert alice(allow_if_no_rule=True).may_any("WRITE", "TOPIC")
    hidden = rule("WRITE", name="*", permission=DENY)
    assert not alice(hidden, allow_if_no_rule=True).may_any("WRITE", "TOPIC")


# Remembered decisions


def test_a_changed_rule_counts_at_once():
    rules = RuleBook([rule()])
    caller = Authorizer(rules).caller(ALICE, HERE)
    assert caller.may("READ", "TOPIC", "orders")
    rules.add(rule(permission=DENY))
    assert not caller.may("READ", "TOPIC", "orders")
    rules.remove(rule(permission=DENY))
    assert caller.may("READ", "TOPIC", "orders")
    rules.remove(rule())
    assert not caller.may("READ", "TOPIC", "orders")


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("semel.core.access.authorizer.MOST_REMEMBERED", 3)
    authorizer = Authorizer(RuleBook([rule(name="*")]))
    caller = authorizer.caller(ALICE, HERE)
    for number in range(10):
        assert caller.may("READ", "TOPIC", f"t{number}")
        assert len(authorizer._allowed) <= 3
    assert caller.may("READ", "TOPIC", "x" * 250)
    assert not any(len(question[4]) > 249 for question in authorizer._allowed)


def test_a_denial_is_told_unless_the_client_did_not_ask():
    told = []
    authorizer = Authorizer(RuleBook(), denied=lambda *question: told.append(question))
    caller = authorizer.caller(ALICE, HERE)
    caller.may_quietly("READ", "TOPIC", "orders")
    caller.may_any("WRITE", "TOPIC")
    assert told == []
    caller.may("READ", "TOPIC", "orders")
    assert told == [(ALICE, HERE, "READ", "TOPIC", "orders")]


# Hosts


@pytest.mark.parametrize(("host", "name"), [
    ("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("::1", "0:0:0:0:0:0:0:1"),
    ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"), ("2001:db8::a0b", "2001:db8:0:0:0:0:0:a0b"),
])  # fmt: skip
def test_hosts_are_named_as_java_names_them(host, name):
    assert java_address(host) == name


# Filters


def test_a_filter_without_conditions_means_every_rule():
    rules = RuleBook([rule(), rule(name="*"), rule(kind="GROUP")])
    assert rules.matching(RuleFilter()) == list(rules)


@pytest.mark.parametrize(("wanted", "names"), [
    (RuleFilter(name="orders"), ["orders/LITERAL", "orders/PREFIXED"]),
    (RuleFilter(name="orders", pattern=LITERAL), ["orders/LITERAL"]),
    (RuleFilter(name="orders", pattern=PREFIXED), ["orders/PREFIXED"]),
    (RuleFilter(name="orders", pattern=MATCH),
     ["orders/LITERAL", "orders/PREFIXED", "ord/PREFIXED", "*/LITERAL"]),
    (RuleFilter(name="ord", pattern=MATCH), ["ord/LITERAL", "ord/PREFIXED", "*/LITERAL"]),
    (RuleFilter(name="*", pattern=ANY), ["*/LITERAL"]),
    (RuleFilter(name="*", pattern=MATCH), ["*/LITERAL"]),
    (RuleFilter(pattern=PREFIXED), ["orders/PREFIXED", "ord/PREFIXED"]),
])  # fmt: skip
def test_a_filter_by_name_means_what_the_pattern_type_says(wanted, names):
    rules = RuleBook(
        [
            rule(name="orders"),
            rule(name="orders", pattern=PREFIXED),
            rule(name="ord"),
            rule(name="ord", pattern=PREFIXED),
            rule(name="*"),
        ]
    )
    assert [f"{one.name}/{one.pattern}" for one in rules.matching(wanted)] == names


@pytest.mark.parametrize("field", Rule._fields)
def test_each_condition_of_a_filter_counts(field):
    mine = rule(host=HERE)
    assert RuleFilter(*mine).matches(mine)
    assert not RuleFilter(*mine._replace(**{field: "other"})).matches(mine)


def test_words_have_kafkas_numbers():
    assert (RESOURCE_TYPE_CODES["TOPIC"], RESOURCE_TYPE_CODES["USER"]) == (2, 7)
    assert (PATTERN_TYPE_CODES[LITERAL], PATTERN_TYPE_CODES[PREFIXED]) == (3, 4)
    assert (OPERATION_CODES["READ"], OPERATION_CODES["TWO_PHASE_COMMIT"]) == (3, 15)
    assert (PERMISSION_CODES[DENY], PERMISSION_CODES[ALLOW]) == (2, 3)
    assert word(OPERATIONS, 16) == word(OPERATIONS, -1) == "UNKNOWN"
