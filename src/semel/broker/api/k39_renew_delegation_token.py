"""RenewDelegationToken (API key 39, versions 1-2): a delegation token expires later.

Who may:   nobody here.
Answers:   why there is none (broker/access/delegation).
Versions:  2 flexible.
"""

from __future__ import annotations

from semel.broker.access.delegation import token_refusal
from semel.broker.context import Context
from semel.wire.messages import ADVERTISED
from semel.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

API_KEY = 39
VERSIONS = ADVERTISED[API_KEY]

#: DelegationTokenManager.ErrorTimestamp.
NO_TIME = -1


def handle(
    ctx: Context, request: RenewDelegationTokenRequest, version: int
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=token_refusal(ctx), expiry_timestamp_ms=NO_TIME)
