"""CreateDelegationToken (API key 38, versions 1-3): a token with which others act as its owner.

Who may:   nobody here; for somebody else, CREATE_TOKENS on the User is asked first.
Answers:   why there is none (broker/access/delegation).
Versions:  2 flexible, 3 a token for somebody else.
"""

from __future__ import annotations

from semel.broker.access.delegation import token_refusal
from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

API_KEY = 38
VERSIONS = ADVERTISED[API_KEY]

#: DelegationTokenManager.ErrorTimestamp.
NO_TIME = -1


def handle(
    ctx: Context, request: CreateDelegationTokenRequest, version: int
) -> CreateDelegationTokenResponse:
    requester_type, requester = ctx.principal
    owner_type, owner = request.owner_principal_type, request.owner_principal_name
    if not owner:
        owner_type, owner = requester_type, requester
    response = CreateDelegationTokenResponse(
        error_code=_refusal(ctx, f"{owner_type}:{owner}"),
        principal_type=owner_type or "",
        principal_name=owner,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
    if version >= 3:
        response.token_requester_principal_type = requester_type
        response.token_requester_principal_name = requester
    return response


def _refusal(ctx: Context, owner: str) -> ErrorCode:
    refusal = token_refusal(ctx)
    if refusal is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED or owner == str(ctx.principal):
        return refusal
    if not ctx.may("CREATE_TOKENS", "USER", owner):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    return refusal
