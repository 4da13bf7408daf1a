"""AlterUserScramCredentials (API key 51, version 0): set and remove SCRAM credentials.

Who may:   ALTER on the Cluster.
Answers:   each user on their own. There are no credentials to remove; setting one is refused, since
           no listener here would ask for it. What Kafka refuses is refused with its reasons.
"""

from __future__ import annotations

from semel.broker.access.scram import iterations_problem, name_problem
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

API_KEY = 51
VERSIONS = ADVERTISED[API_KEY]

Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult

REFUSED = ApiError(ErrorCode.UNSUPPORTED_VERSION, "This broker has no SCRAM credentials.")
NOT_FOUND = ApiError(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
TWICE = ApiError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)


def handle(
    ctx: Context, request: AlterUserScramCredentialsRequest, version: int
) -> AlterUserScramCredentialsResponse:
    require_cluster(ctx, "ALTER")
    problems: dict[str, ApiError] = {}  # the first of each user counts
    for deletion in request.deletions:
        if deletion.name not in problems:
            problems[deletion.name] = name_problem(deletion.name, deletion.mechanism) or NOT_FOUND
    for upsertion in request.upsertions:
        problem = problems.get(upsertion.name)
        if problem is None:
            problems[upsertion.name] = _upsertion_problem(upsertion) or REFUSED
        elif problem is REFUSED:
            problems[upsertion.name] = TWICE
    return AlterUserScramCredentialsResponse(
        results=[
            Result(user=user, error_code=problem.code, error_message=problem.message)
            for user, problem in problems.items()
        ]
    )


def _upsertion_problem(asked: Upsertion) -> ApiError | None:
    return name_problem(asked.name, asked.mechanism) or iterations_problem(asked.iterations)
