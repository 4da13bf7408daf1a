"""What the three ACL requests share: rules in the protocol's numbers, and whether they can be kept.

Kafka closes the connection of who sends a number that it does not know; here such a request is
answered with INVALID_REQUEST.
"""

from __future__ import annotations

from typing import Any

from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.core.access.rules import Rule, RuleFilter
from semel.wire.acls import (
    ALLOW,
    ANY,
    DENY,
    LITERAL,
    OPERATION_CODES,
    OPERATIONS,
    PATTERN_TYPE_CODES,
    PATTERN_TYPES,
    PERMISSION_CODES,
    PERMISSIONS,
    PREFIXED,
    RESOURCE_TYPE_CODES,
    RESOURCE_TYPES,
    UNKNOWN,
    word,
)
from semel.wire.errors import ErrorCode
from semel.wire.messages.create_acls import CreateAclsRequest
from semel.wire.messages.delete_acls import DeleteAclsRequest
from semel.wire.messages.describe_acls import DescribeAclsRequest


def require_authorizer(ctx: Context, message: str) -> None:
    if ctx.broker.access is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, message)


def rule_of(asked: CreateAclsRequest.AclCreation) -> Rule:
    """The rule asked for, if it is one (AclApis and AclControlManager.validateNewAcl)."""
    rule = Rule(
        word(RESOURCE_TYPES, asked.resource_type),
        asked.resource_name,
        word(PATTERN_TYPES, asked.resource_pattern_type),
        asked.principal,
        asked.host,
        word(OPERATIONS, asked.operation),
        word(PERMISSIONS, asked.permission_type),
    )
    problem = _problem(rule)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    return rule


def _problem(rule: Rule) -> str | None:
    if rule.resource_type == "CLUSTER" and rule.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not rule.name:
        return "Invalid empty resource name"
    if rule.resource_type in (UNKNOWN, ANY):
        return f"Invalid resourceType {rule.resource_type}"
    if rule.pattern not in (LITERAL, PREFIXED):
        return f"Invalid patternType {rule.pattern}"
    if rule.operation in (UNKNOWN, ANY):
        return f"Invalid operation {rule.operation}"
    if rule.permission not in (ALLOW, DENY):
        return f"Invalid permissionType {rule.permission}"
    return None


def filter_of(asked: DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter) -> RuleFilter:
    wanted = RuleFilter(
        word(RESOURCE_TYPES, asked.resource_type_filter),
        asked.resource_name_filter,
        word(PATTERN_TYPES, asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        word(OPERATIONS, asked.operation),
        word(PERMISSIONS, asked.permission_type),
    )
    unknown = wanted.unknown_part
    if unknown is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown {unknown}.")
    return wanted


def pattern_fields(rule: Rule) -> dict[str, Any]:
    """The fields of a response that say what the rule is about …"""
    return {
        "resource_type": RESOURCE_TYPE_CODES[rule.resource_type],
        "resource_name": rule.name,
        "pattern_type": PATTERN_TYPE_CODES[rule.pattern],
    }


def entry_fields(rule: Rule) -> dict[str, Any]:
    """… and those that say who may do what."""
    return {
        "principal": rule.principal,
        "host": rule.host,
        "operation": OPERATION_CODES[rule.operation],
        "permission_type": PERMISSION_CODES[rule.permission],
    }
