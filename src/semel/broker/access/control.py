"""The broker's access control: the authorizer over the catalog's rules, and a line per denial."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from semel.broker.settings.of_brokers import principals
from semel.core.access.audit import AuditLimit
from semel.core.access.authorizer import Authorizer

if TYPE_CHECKING:
    from semel.broker.server import Broker

#: A name of its own, so that these lines can go elsewhere.
log = logging.getLogger("semel.audit")


def access_control(broker: Broker) -> Authorizer | None:
    """As the settings say; None if everybody may do everything."""
    settings = broker.settings
    if not settings["authorizer.class.name"]:
        return None
    limit = AuditLimit()

    def denied(principal: str, host: str, operation: str, resource_type: str, name: str) -> None:
        held_back = limit.admit((principal, host, operation, resource_type, name), broker.now_ms())
        if held_back is not None:
            told = {
                "principal": principal,
                "host": host,
                "operation": operation,
                "resource": f"{resource_type}:{name}",
            }
            log.warning("denied", extra=told | ({"not_told": held_back} if held_back else {}))

    return Authorizer(
        broker.catalog.rules,
        principals(settings["super.users"]),
        settings["allow.everyone.if.no.acl.found"],
        denied,
    )
