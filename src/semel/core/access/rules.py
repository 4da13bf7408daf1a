"""An access rule (Kafka's ACL binding), and which rules a filter means. Words: `wire/acls`."""

from __future__ import annotations

from typing import NamedTuple

from semel.wire.acls import ALL, ALLOW, ANY, MATCH, PREFIXED, UNKNOWN

#: As a name it means every resource of a type, as a host every host.
WILDCARD = "*"
EVERYBODY = "User:*"

#: What may be done with a resource of a type (AclEntry.supportedOperations), in Kafka's order.
SUPPORTED_OPERATIONS = {
    "TOPIC": (
        "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
    ),
    "GROUP": ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "CLUSTER": (
        "CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
    ),
    "TRANSACTIONAL_ID": ("DESCRIBE", "WRITE", "TWO_PHASE_COMMIT"),
    "DELEGATION_TOKEN": ("DESCRIBE",),
    "USER": ("CREATE_TOKENS", "DESCRIBE_TOKENS"),
}  # fmt: skip

#: Whoever is allowed one of these may look, too (StandardAuthorizerData.IMPLIES_DESCRIBE). A denial
#: implies nothing.
IMPLIED_BY = {
    "DESCRIBE": frozenset({"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER", ALL}),
    "DESCRIBE_CONFIGS": frozenset({"DESCRIBE_CONFIGS", "ALTER_CONFIGS", ALL}),
}


class Rule(NamedTuple):
    """`permission` to `principal`, coming from `host`, for `operation` on what `name` means."""

    resource_type: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str

    def names(self, resource: str) -> bool:
        """Whether a resource of the rule's type is meant."""
        if self.pattern == PREFIXED:
            return resource.startswith(self.name)
        return self.name == resource or self.name == WILDCARD

    def is_about(self, principal: str, host: str) -> bool:
        return self.principal in (principal, EVERYBODY) and self.host in (host, WILDCARD)

    def covers(self, operation: str) -> bool:
        if self.permission == ALLOW:
            implied = IMPLIED_BY.get(operation)
            if implied is not None:
                return self.operation in implied
        return self.operation in (operation, ALL)


class RuleFilter(NamedTuple):
    """Which rules are meant (Kafka's AclBindingFilter); None and ANY mean all."""

    resource_type: str = ANY
    name: str | None = None
    pattern: str = ANY
    principal: str | None = None
    host: str | None = None
    operation: str = ANY
    permission: str = ANY

    @property
    def unknown_part(self) -> str | None:
        """Kafka's word for the half of the filter that holds a number it does not know."""
        if UNKNOWN in (self.resource_type, self.pattern):
            return "patternFilter"
        if UNKNOWN in (self.operation, self.permission):
            return "entryFilter"
        return None

    def matches(self, rule: Rule) -> bool:
        return (
            self.resource_type in (ANY, rule.resource_type)
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (ANY, rule.operation)
            and self.permission in (ANY, rule.permission)
        )

    def _matches_name(self, rule: Rule) -> bool:
        """ResourcePatternFilter.matches: MATCH asks which rules a resource of that name meets."""
        if self.pattern not in (ANY, MATCH, rule.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern == MATCH:
            return rule.names(self.name)
        return self.name == rule.name
