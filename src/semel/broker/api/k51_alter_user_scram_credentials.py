"""AlterUserScramCredentials (API key 51, version 0): set and remove SCRAM credentials.

Who may:   ALTER on the Cluster.
Answers:   when durable, each user on their own. Of a password, which comes salted, only keys are
           kept that nobody can log in with.
"""

from __future__ import annotations

from functools import partial

from semel.broker.access.scram import iterations_problem, name_problem
from semel.broker.catalog.credentials import Key, credential_record
from semel.broker.catalog.draft import CatalogDraft
from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.core.access.scram import ScramCredential, ScramMechanism, credential_of
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

API_KEY = 51
VERSIONS = ADVERTISED[API_KEY]

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
Change = tuple[Key, ScramCredential | None]

NOT_FOUND = ApiError(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
TWICE = ApiError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)


async def handle(
    ctx: Context, request: AlterUserScramCredentialsRequest, version: int
) -> AlterUserScramCredentialsResponse:
    require_cluster(ctx, "ALTER")
    return await ctx.catalog.change(partial(_decide, ctx, request))


def _decide(
    ctx: Context, request: AlterUserScramCredentialsRequest, draft: CatalogDraft
) -> AlterUserScramCredentialsResponse:
    problems: dict[str, ApiError] = {}  # the first of each user counts
    changes: dict[str, Change] = {}
    every: list[Deletion | Upsertion] = [*request.deletions, *request.upsertions]
    for asked in every:
        if asked.name in problems:
            continue
        problem = TWICE if changes.pop(asked.name, None) is not None else _problem(ctx, asked)
        if problem is not None:
            problems[asked.name] = problem
        else:
            changes[asked.name] = _change(asked)
    for key, credential in changes.values():
        draft.add(credential_record(key, credential))
    done = [Result(user=user, error_message=None) for user in changes]
    return AlterUserScramCredentialsResponse(
        results=done
        + [
            Result(user=user, error_code=problem.code, error_message=problem.message)
            for user, problem in problems.items()
        ]
    )


def _problem(ctx: Context, asked: Deletion | Upsertion) -> ApiError | None:
    problem = name_problem(asked.name, asked.mechanism)
    if problem is not None:
        return problem
    if isinstance(asked, Upsertion):
        return iterations_problem(asked.iterations)
    return None if _key(asked) in ctx.catalog.credentials else NOT_FOUND


def _key(asked: Deletion | Upsertion) -> Key:
    return ScramMechanism(asked.mechanism), asked.name


def _change(asked: Deletion | Upsertion) -> Change:
    key = _key(asked)
    if isinstance(asked, Deletion):
        return key, None
    salted, salt = bytes(asked.salted_password), bytes(asked.salt)
    return key, credential_of(key[0], salted, salt, asked.iterations)
