"""Decides what clients may do: super users, rules, and the answer where no rule is.

Decisions that allow are remembered until a rule changes: with ten thousand rules, a client that
asks the same again pays for one look into a set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import AddressValueError, IPv6Address

from semel.core.access.rule_book import RuleBook, Verdict

#: So many decisions are remembered; one more, and all are forgotten.
MOST_REMEMBERED = 1 << 14
#: Names beyond this length are looked up each time: a topic's has no more characters, and what a
#: client can make us keep is bounded.
LONGEST_REMEMBERED = 249

#: Told of a denial: principal, host, operation, resource type, name.
Denied = Callable[[str, str, str, str, str], None]
Decision = tuple[str, str, str, str, str]


class Authorizer:
    def __init__(
        self,
        rules: RuleBook,
        super_users: Collection[str] = (),
        allow_if_no_rule: bool = False,
        denied: Denied = lambda *question: None,
    ) -> None:
        self.rules = rules
        self.super_users = frozenset(super_users)
        self.allow_if_no_rule = allow_if_no_rule
        self.denied = denied
        self._allowed: set[Decision] = set()
        rules.changed = self._allowed.clear

    def caller(self, principal: str, host: str) -> Caller:
        """Who asks; `host` is an address as `socket` tells it."""
        return Caller(self, principal, java_address(host))

    def is_allowed(self, question: Decision) -> bool:
        verdict = self.rules.judge(*question)
        if verdict is Verdict.DENIED:
            return False
        if verdict is Verdict.UNRULED and not self.allow_if_no_rule:
            return False
        self._remember(question)
        return True

    def is_any_allowed(self, principal: str, host: str, operation: str, resource_type: str) -> bool:
        verdict = self.rules.judge_any(principal, host, operation, resource_type)
        return verdict is Verdict.ALLOWED or (verdict is Verdict.UNRULED and self.allow_if_no_rule)

    def _remember(self, question: Decision) -> None:
        if len(question[4]) > LONGEST_REMEMBERED:
            return
        if len(self._allowed) >= MOST_REMEMBERED:
            self._allowed.clear()
        self._allowed.add(question)


class Caller:
    """One principal on one host. Operation and resource type are Kafka's words, in capitals."""

    __slots__ = ("_allowed", "_authorizer", "host", "is_super_user", "principal")

    def __init__(self, authorizer: Authorizer, principal: str, host: str) -> None:
        self.principal = principal
        self.host = host
        self.is_super_user = principal in authorizer.super_users
        self._authorizer = authorizer
        self._allowed = authorizer._allowed

    def may(self, operation: str, resource_type: str, name: str) -> bool:
        """Whether the client may do this; that it may not is told."""
        question = (self.principal, self.host, operation, resource_type, name)
        if question in self._allowed or self.may_quietly(operation, resource_type, name):
            return True
        self._authorizer.denied(*question)
        return False

    def may_quietly(self, operation: str, resource_type: str, name: str) -> bool:
        """The same of what the client did not ask for by name: to filter a list, or to tell what it
        could do (Kafka's logIfDenied = false)."""
        question = (self.principal, self.host, operation, resource_type, name)
        if question in self._allowed or self.is_super_user:
            return True
        return self._authorizer.is_allowed(question)

    def may_any(self, operation: str, resource_type: str) -> bool:
        """Whether there may be a resource of the type with which the client may do this."""
        if self.is_super_user:
            return True
        return self._authorizer.is_any_allowed(self.principal, self.host, operation, resource_type)


def java_address(host: str) -> str:
    """An address as Java's InetAddress prints it, which is how rules name hosts: IPv6 in full, and
    an IPv4 address that came by way of IPv6 as what it is."""
    address, percent, scope = host.partition("%")
    try:
        parsed = IPv6Address(address)
    except AddressValueError:
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = (int(group, 16) for group in parsed.exploded.split(":"))
    return ":".join(f"{group:x}" for group in groups) + percent + scope
