"""Names of clients that show certificates: subjects as Java writes them, and rules for them."""

import pytest

from semel.core.access.principals import (
    ANONYMOUS,
    BadRule,
    NoRuleApplies,
    PrincipalRules,
    distinguished_name,
)


def subject(*parts):
    """As `ssl` tells it: the first part of the certificate first."""
    return tuple(((name, value),) for name, value in parts)


def test_the_last_part_of_a_subject_is_written_first() -> None:
    parts = subject(
        ("countryName", "DE"), ("stateOrProvinceName", "B"), ("localityName", "City"),
        ("organizationName", "Us"), ("organizationalUnitName", "people"), ("commonName", "alice"),
    )  # fmt: skip
    assert distinguished_name(parts) == "CN=alice,OU=people,O=Us,L=City,ST=B,C=DE"


@pytest.mark.parametrize(
    ("name", "written"),
    [("a,b", r"a\,b"), ("a+b=c", r"a\+b\=c"), ("#1", r"\#1"), (" x ", r"\ x\ "), ('"', r"\"")],
)
def test_special_characters_are_escaped(name: str, written: str) -> None:
    assert distinguished_name(subject(("commonName", name))) == f"CN={written}"


def test_an_attribute_without_a_short_name_is_told_by_its_number() -> None:
    """X500Principal.getName(): RFC 2253 has no word for e-mail addresses."""
    parts = subject(("commonName", "a"), ("emailAddress", "a@b"))
    assert distinguished_name(parts) == "1.2.840.113549.1.9.1=#1603614062,CN=a"


KAFKAS = (
    r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U,"
    r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U"
)


@pytest.mark.parametrize(
    ("name", "user"),
    [  # those of Kafka's documentation, and of SslPrincipalMapperTest
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "Duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
    ],
)
def test_the_first_rule_that_matches_counts(name: str, user: str) -> None:
    assert PrincipalRules(KAFKAS).name_of(name) == user


def test_who_matches_no_rule_is_nobody_unless_there_is_a_default() -> None:
    with pytest.raises(NoRuleApplies):
        PrincipalRules(r"RULE:^CN=(a)$/$1/").name_of("CN=b")
    assert PrincipalRules(r"RULE:^CN=(a)$/$1/, DEFAULT").name_of("CN=b") == "CN=b"
    assert PrincipalRules().name_of("CN=b") == "CN=b"


@pytest.mark.parametrize(
    ("rule", "user"),
    [
        (r"RULE:^CN=(.*)$/$1-$2/", "x-$2"),  # no such group: as it stands
        (r"RULE:^CN=(.*)$/$12/", "x2"),
        (r"RULE:^CN=(.*)$/a\/$1/", "a/x"),
    ],
)
def test_references_in_replacements(rule: str, user: str) -> None:
    assert PrincipalRules(rule).name_of("CN=x") == user


@pytest.mark.parametrize("text", ["DEFALT", "RULE:a", "RULE:a/b", "RULE:a/b/X", "DEFAULT RULE:"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(BadRule):
        PrincipalRules(text)


def test_nobody_known_is_anonymous() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
