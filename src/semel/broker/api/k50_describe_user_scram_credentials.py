"""DescribeUserScramCredentials (API key 50, version 0): which users have SCRAM credentials.

Who may:   DESCRIBE on the Cluster.
Answers:   nobody has any; who is asked for by name is not found. A name asked for twice is told so
           (ScramImage.describe).
"""

from __future__ import annotations

from collections import Counter

from semel.broker.context import Context
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

API_KEY = 50
VERSIONS = ADVERTISED[API_KEY]

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def handle(
    ctx: Context, request: DescribeUserScramCredentialsRequest, version: int
) -> DescribeUserScramCredentialsResponse:
    require_cluster(ctx, "DESCRIBE")
    times = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_result(user, count) for user, count in times.items()]
    )


def _result(user: str, times: int) -> Result:
    if times > 1:
        return Result(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {user}",
        )
    return Result(
        user=user,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"Attempt to describe a user credential that does not exist: {user}",
    )
