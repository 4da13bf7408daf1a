"""DescribeDelegationToken (API key 41, versions 1-3): the delegation tokens of some owners.

Who may:   nobody here.
Answers:   DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: see CreateDelegationToken.
Versions:  2 flexible, 3 who asked for the token.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

API_KEY = 41
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: DescribeDelegationTokenRequest, version: int
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )
