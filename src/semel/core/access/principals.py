"""Principals: who is at the other end of a connection, as Kafka names them."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, NamedTuple

from semel.core.patterns import Pattern, compile_pattern

USER = "User"


class KafkaPrincipal(NamedTuple):
    """Kafka's class of that name: a type, nearly always `User`, and a name within it."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


#: Whoever comes by a listener that asks nobody who they are.
ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")


class NoRuleApplies(Exception):
    """A certificate's subject that no rule of `ssl.principal.mapping.rules` matches."""


class BadRule(ValueError):
    """Not a rule of `ssl.principal.mapping.rules`."""


_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/"
    r"(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))?\s*(?:,|$)"
)
_REFERENCE = re.compile(r"\\(.)|\$(\d+)")


class PrincipalRules:
    """How a certificate's subject becomes a user's name (SslPrincipalMapper): the first rule that
    matches counts. `RULE:pattern/replacement/` with L or U at its end, or DEFAULT, the subject."""

    def __init__(self, text: str = "DEFAULT") -> None:
        self._rules: list[tuple[Pattern, str, str] | None] = []
        text, position = text.strip(), 0
        while position < len(text):
            rule = _RULE.match(text, position)
            if rule is None:
                raise BadRule(f"Invalid rule: `{text[position:]}`")
            position = rule.end()
            if rule["default"]:
                self._rules.append(None)
            elif rule["pattern"] is not None:
                pattern = compile_pattern(rule["pattern"].replace(r"\/", "/"))
                self._rules.append((pattern, rule["replacement"], rule["case"]))

    def name_of(self, subject: str) -> str:
        for rule in self._rules:
            if rule is None:
                return subject
            pattern, replacement, case = rule
            found: Any = pattern.fullmatch(subject)
            if found is not None:
                name = _REFERENCE.sub(partial(_referred, found), replacement)
                return {"L": name.lower(), "U": name.upper()}.get(case, name)
        raise NoRuleApplies(f"No rules apply to {subject}")


def _referred(found: Any, reference: re.Match[str]) -> str:
    """What stands for `$12` in a replacement: the group of the most digits that there is one of."""
    if reference[1] is not None:
        return reference[1]
    digits = reference[2]
    groups = len(found.groups())
    for size in range(len(digits), 0, -1):
        if int(digits[:size]) <= groups:
            return (found.group(int(digits[:size])) or "") + digits[size:]
    return reference[0]


#: The attributes that RFC 2253 has short names for, and OpenSSL's long ones.
_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
#: Others that certificates have; Java tells them by number, their value as DER in hex.
_NUMBERS = {
    "emailAddress": ("1.2.840.113549.1.9.1", 0x16),
    "serialNumber": ("2.5.4.5", 0x13),
    "title": ("2.5.4.12", 0x0C),
    "givenName": ("2.5.4.42", 0x0C),
    "surname": ("2.5.4.4", 0x0C),
    "dnQualifier": ("2.5.4.46", 0x13),
}
_SPECIAL = re.compile(r'([,+"\\<>;=])')

Subject = tuple[tuple[tuple[str, str], ...], ...]


def distinguished_name(subject: Subject) -> str:
    """A certificate's subject as X500Principal.getName() writes it (RFC 2253): last part first."""
    return ",".join("+".join(_attribute(*one) for one in part) for part in reversed(subject))


def _attribute(name: str, value: str) -> str:
    if name in _NUMBERS:
        number, tag = _NUMBERS[name]
        raw = value.encode()
        length = bytes([len(raw)]) if len(raw) < 128 else b"\x82" + len(raw).to_bytes(2, "big")
        return f"{number}=#{(bytes([tag]) + length + raw).hex()}"
    escaped = _SPECIAL.sub(r"\\\1", value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if escaped.endswith(" ") and len(escaped) > 1:
        escaped = f"{escaped[:-1]}\\ "
    return f"{_SHORT_NAMES.get(name, name)}={escaped}"
