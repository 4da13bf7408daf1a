"""ExpireDelegationToken (API key 40, versions 1-2): a delegation token expires sooner.

Who may:   nobody here.
Answers:   why there is none (broker/access/delegation).
Versions:  2 flexible.
"""

from __future__ import annotations

from semel.broker.access.delegation import token_refusal
from semel.broker.context import Context
from semel.wire.messages import ADVERTISED
from semel.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

API_KEY = 40
VERSIONS = ADVERTISED[API_KEY]

#: DelegationTokenManager.ErrorTimestamp.
NO_TIME = -1


def handle(
    ctx: Context, request: ExpireDelegationTokenRequest, version: int
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=token_refusal(ctx), expiry_timestamp_ms=NO_TIME)
