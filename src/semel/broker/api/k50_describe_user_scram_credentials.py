"""DescribeUserScramCredentials (API key 50, version 0): which users have SCRAM credentials.

Who may:   DESCRIBE on the Cluster.
Answers:   of each user mechanisms and iterations, never keys; all users if none is named. A name
           asked for twice is told so (ScramImage.describe).
"""

from __future__ import annotations

from collections import Counter

from semel.broker.catalog.credentials import ScramCredentials
from semel.broker.context import CLUSTER_NAME, Context
from semel.core.access.scram import ScramMechanism
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
    if not ctx.may("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED  # told for each, but not who was asked for
        return DescribeUserScramCredentialsResponse(
            error_code=denied, results=[Result(error_code=denied) for _ in request.users or ()]
        )
    credentials = ctx.catalog.credentials
    times = Counter(user.name for user in request.users or ())
    asked = times or Counter({user for _, user in credentials})
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_result(credentials, user, count) for user, count in asked.items()],
    )


def _result(credentials: ScramCredentials, user: str, times: int) -> Result:
    if times > 1:
        return Result(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {user}",
        )
    infos = [
        DescribeUserScramCredentialsResponse.CredentialInfo(
            mechanism=mechanism.value, iterations=one.iterations
        )
        for mechanism in ScramMechanism
        if (one := credentials.get((mechanism, user))) is not None
    ]
    if infos:
        return Result(user=user, error_message=None, credential_infos=infos)
    return Result(
        user=user,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"Attempt to describe a user credential that does not exist: {user}",
    )
