"""Access rules (ACLs): who may do what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

from semel.client.cluster import Cluster
from semel.client.errors import error_for
from semel.errors import UsageError
from semel.wire.acls import (
    OPERATION_CODES,
    OPERATIONS,
    PATTERN_TYPE_CODES,
    PATTERN_TYPES,
    PERMISSION_CODES,
    PERMISSIONS,
    RESOURCE_TYPE_CODES,
    RESOURCE_TYPES,
    word,
)
from semel.wire.messages.create_acls import CreateAclsRequest
from semel.wire.messages.delete_acls import DeleteAclsRequest
from semel.wire.messages.describe_acls import DescribeAclsRequest


@dataclass(frozen=True, slots=True)
class Acl:
    """Allows, or denies, a principal an operation on a resource. The words are Kafka's: resource
    type TOPIC, GROUP, CLUSTER (named `kafka-cluster`), TRANSACTIONAL_ID, …; operation READ, WRITE,
    …, ALL; pattern LITERAL (the name `*` means every resource) or PREFIXED."""

    principal: str
    operation: str
    resource_type: str
    name: str
    pattern: str = "LITERAL"
    host: str = "*"
    permission: str = "ALLOW"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which rules are meant; None and ANY mean all. With the pattern MATCH, those that apply to a
    resource of the name: of exactly that name, of a prefix of it, and of `*`."""

    principal: str | None = None
    operation: str = "ANY"
    resource_type: str = "ANY"
    name: str | None = None
    pattern: str = "ANY"
    host: str | None = None
    permission: str = "ANY"


class AclAdministration:
    _cluster: Cluster

    async def create_acls(self, acls: Iterable[Acl]) -> None:
        """All of them, or an error that names the first that could not be made. One that is there
        already is fine."""
        wanted = list(acls)
        request = CreateAclsRequest(creations=[_creation(acl) for acl in wanted])
        answer = await self._cluster.ask(request)
        for acl, result in zip(wanted, answer.results, strict=True):
            if result.error_code:
                raise error_for(result.error_code, str(acl), why=result.error_message)

    async def describe_acls(self, wanted: AclFilter | None = None) -> list[Acl]:
        """The rules that match; without a filter all."""
        fields = _filter_fields(wanted or AclFilter())
        answer = await self._cluster.ask(DescribeAclsRequest(**fields))
        if answer.error_code:
            raise error_for(answer.error_code, "access rules", why=answer.error_message)
        found = [_acl_of(resource, acl) for resource in answer.resources for acl in resource.acls]
        return sorted(found, key=astuple)

    async def delete_acls(self, wanted: Iterable[AclFilter]) -> list[Acl]:
        """Removes the rules that match one of the filters, and tells which they were."""
        Filter = DeleteAclsRequest.DeleteAclsFilter
        filters = [Filter(**_filter_fields(one)) for one in wanted]
        answer = await self._cluster.ask(DeleteAclsRequest(filters=filters))
        found = set()
        for result in answer.filter_results:
            for failed in (result, *result.matching_acls):
                if failed.error_code:
                    raise error_for(failed.error_code, "access rules", why=failed.error_message)
            found |= {_acl_of(acl, acl) for acl in result.matching_acls}
        return sorted(found, key=astuple)


def _creation(acl: Acl) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=_code(RESOURCE_TYPE_CODES, "resource type", acl.resource_type),
        resource_name=acl.name,
        resource_pattern_type=_code(PATTERN_TYPE_CODES, "pattern", acl.pattern),
        principal=acl.principal,
        host=acl.host,
        operation=_code(OPERATION_CODES, "operation", acl.operation),
        permission_type=_code(PERMISSION_CODES, "permission", acl.permission),
    )


def _filter_fields(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": _code(RESOURCE_TYPE_CODES, "resource type", wanted.resource_type),
        "resource_name_filter": wanted.name,
        "pattern_type_filter": _code(PATTERN_TYPE_CODES, "pattern", wanted.pattern),
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": _code(OPERATION_CODES, "operation", wanted.operation),
        "permission_type": _code(PERMISSION_CODES, "permission", wanted.permission),
    }


def _code(codes: dict[str, int], what: str, given: str) -> int:
    code = codes.get(given, 0)
    if not code:
        known = ", ".join(name for name, number in codes.items() if number)
        raise UsageError(f"there is no {what} {given!r}; known: {known}")
    return code


def _acl_of(resource: Any, acl: Any) -> Acl:
    return Acl(
        principal=acl.principal,
        operation=word(OPERATIONS, acl.operation),
        resource_type=word(RESOURCE_TYPES, resource.resource_type),
        name=resource.resource_name,
        pattern=word(PATTERN_TYPES, resource.pattern_type),
        host=acl.host,
        permission=word(PERMISSIONS, acl.permission_type),
    )
