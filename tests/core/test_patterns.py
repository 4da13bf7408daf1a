"""Regular expressions of clients: RE2's language is run, everything else is refused."""

import pytest

from semel.core.patterns import InvalidPattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("orders-.*", "orders-eu"),
        ("(eu|us)+", "euus"),
        ("a{2,1000}", "aa"),
        ("(?i)Orders", "oRDERS"),
        ("(?:ab)+?", "abab"),
        ("(?P<region>eu)", "eu"),
        (r"orders\z", "orders"),
        (r"a\++", "a++"),
        ("[*+]+", "*+*"),
        (r"[]*\]]+", "]*"),
        ("([+*])*", "+*+"),
        ("[[:alpha:]]+", "abc"),
        (r"\pL+", "straße"),
        (r"\Qa.b\E", "a.b"),
    ],
)
def test_what_re2_knows_is_matched(pattern, text):
    assert compile_pattern(pattern).fullmatch(text)


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?P<n>a)(?P=n)", "a*+", "(?>a)",
     "(a)?(?(1)b)"],
)  # fmt: skip
def test_what_re2_does_not_know_is_refused(pattern):
    with pytest.raises(InvalidPattern):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a*)*", "(a|aa)+", "(.*)*x(.*)*y"])
def test_no_pattern_runs_away(pattern):
    """Python's own matcher would not be done with these when the sun goes out."""
    assert compile_pattern(pattern).fullmatch("a" * 10_000 + "!") is None


@pytest.mark.parametrize(
    "pattern",
    ["(", "[", "*", "a{1001}", "(" * 5000,
     "((a{100}){100}){100}"],
)  # fmt: skip
def test_what_is_no_expression_or_too_large_is_refused(pattern):
    with pytest.raises(InvalidPattern):
        compile_pattern(pattern)
