"""SCRAM credentials: which a client may ask to set (Kafka's ScramControlManager)."""

from __future__ import annotations

from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode

SCRAM_SHA_256, SCRAM_SHA_512 = MECHANISMS = 1, 2
FEWEST_ITERATIONS, MOST_ITERATIONS = 4096, 16_384


def name_problem(user: str, mechanism: int) -> ApiError | None:
    if not user:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in MECHANISMS:
        return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return None


def iterations_problem(iterations: int) -> ApiError | None:
    if iterations < FEWEST_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > MOST_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None
