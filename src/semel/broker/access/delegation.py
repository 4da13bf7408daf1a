"""Delegation tokens, which this broker does not give: how it says so to whom."""

from __future__ import annotations

from semel.broker.context import Context
from semel.core.access.principals import ANONYMOUS
from semel.wire.errors import ErrorCode


def token_refusal(ctx: Context) -> ErrorCode:
    """As a Kafka without `delegation.token.secret.key`: tokens are only for who proved who they
    are (KafkaApis.allowTokenRequests), and for them they are switched off."""
    if ctx.connection.session is None and ctx.principal == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
