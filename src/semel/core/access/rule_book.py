"""All access rules, found fast: by exact name, and by each length that a prefix has.

The rules of Kafka's StandardAuthorizerData: of those that name the resource and are about the
client, a denial wins; without any that allows, the answer is no. Where no rule names the resource
at all, the answer is whatever `allow.everyone.if.no.acl.found` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

from semel.core.access.rules import WILDCARD, Rule, RuleFilter
from semel.wire.acls import ALL, ALLOW, DENY, LITERAL, PREFIXED

#: Kafka's Authorizer.authorizeByResourceType asks about a resource of this name first.
ANY_NAME = "hardcode"


class Verdict(Enum):
    ALLOWED = "allowed"
    DENIED = "denied"
    #: No rule names the resource.
    UNRULED = "unruled"


class RuleBook:
    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules: dict[Rule, None] = {}  # in the order in which they were added
        #: (resource type, name) → the rules of exactly this name; "*" is one of the names.
        self._literals: dict[tuple[str, str], dict[Rule, None]] = {}
        #: resource type → length → prefix → rules.
        self._prefixes: dict[str, dict[int, dict[str, dict[Rule, None]]]] = {}
        #: Called after every change, by who keeps decisions.
        self.changed: Callable[[], None] = lambda: None
        for rule in rules:
            self.add(rule)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, rule: Rule) -> bool:
        return rule in self._rules

    def add(self, rule: Rule) -> None:
        self._rules[rule] = None
        if rule.pattern == PREFIXED:
            lengths = self._prefixes.setdefault(rule.resource_type, {})
            names = lengths.setdefault(len(rule.name), {})
            names.setdefault(rule.name, {})[rule] = None
        else:
            self._literals.setdefault((rule.resource_type, rule.name), {})[rule] = None
        self.changed()

    def remove(self, rule: Rule) -> None:
        del self._rules[rule]
        if rule.pattern == PREFIXED:
            lengths = self._prefixes[rule.resource_type]
            names = lengths[len(rule.name)]
            _take_out(names, rule.name, rule)
            if not names:
                del lengths[len(rule.name)]
        else:
            _take_out(self._literals, (rule.resource_type, rule.name), rule)
        self.changed()

    def matching(self, wanted: RuleFilter) -> list[Rule]:
        return [rule for rule in self._rules if wanted.matches(rule)]

    def judge(
        self, principal: str, host: str, operation: str, resource_type: str, name: str
    ) -> Verdict:
        """What the rules say; `name` is that of one resource, never a pattern."""
        verdict = Verdict.UNRULED
        for rules in self._naming(resource_type, name):
            if verdict is Verdict.UNRULED:
                verdict = Verdict.DENIED
            for rule in rules:
                if rule.is_about(principal, host) and rule.covers(operation):
                    if rule.permission == DENY:
                        return Verdict.DENIED
                    verdict = Verdict.ALLOWED
        return verdict

    def judge_any(self, principal: str, host: str, operation: str, resource_type: str) -> Verdict:
        """Whether there may be a resource of the type on which the operation is allowed: a pattern
        that allows it, and is not covered by one that denies it (Authorizer's
        authorizeByResourceType). Which resources exist does not count, and here no operation
        implies another."""
        asked = self.judge(principal, host, operation, resource_type, ANY_NAME)
        if asked is Verdict.ALLOWED:
            return asked
        patterns: dict[tuple[str, str], set[str]] = {
            (permission, pattern): set()
            for permission in (ALLOW, DENY)
            for pattern in (LITERAL, PREFIXED)
        }
        for rule in self._rules:
            if (
                rule.resource_type == resource_type
                and rule.is_about(principal, host)
                and rule.operation in (operation, ALL)
            ):
                patterns[rule.permission, rule.pattern].add(rule.name)
        return Verdict.ALLOWED if _some_open(patterns) else asked

    def _naming(self, resource_type: str, name: str) -> Iterator[dict[Rule, None]]:
        """The rules whose pattern names the resource."""
        for literal in {name, WILDCARD}:
            found = self._literals.get((resource_type, literal))
            if found is not None:
                yield found
        for length, names in self._prefixes.get(resource_type, {}).items():
            found = names.get(name[:length]) if length <= len(name) else None
            if found is not None:
                yield found


def _some_open(patterns: dict[tuple[str, str], set[str]]) -> bool:
    """Whether one of the patterns that allow is not wholly covered by those that deny."""
    denied, denied_prefixes = patterns[DENY, LITERAL], patterns[DENY, PREFIXED]
    allowed = patterns[ALLOW, LITERAL]
    if WILDCARD in denied:
        return False
    if WILDCARD in allowed:
        return True
    candidates = (allowed - denied) | patterns[ALLOW, PREFIXED]
    return any(
        not any(name[:length] in denied_prefixes for length in range(1, len(name) + 1))
        for name in candidates
    )


def _take_out(index: dict[Any, dict[Rule, None]], key: Any, rule: Rule) -> None:
    rules = index[key]
    del rules[rule]
    if not rules:
        del index[key]
