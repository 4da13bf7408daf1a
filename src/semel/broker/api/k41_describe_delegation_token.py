"""DescribeDelegationToken (API key 41, versions 1-3): the delegation tokens of some owners.

Who may:   nobody here.
Answers:   why there is none (broker/access/delegation).
Versions:  2 flexible, 3 who asked for the token.
"""

from __future__ import annotations

from semel.broker.access.delegation import token_refusal
from semel.broker.context import Context
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
    return DescribeDelegationTokenResponse(error_code=token_refusal(ctx))
