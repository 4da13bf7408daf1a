"""Fetch: records from given offsets on, now or when there are enough of them.

Who may: READ on each TOPIC; who says that it is a follower, CLUSTER_ACTION on the CLUSTER. Answers
at once or by long poll (`max_wait_ms`, `min_bytes`); sessions (KIP-227) keep requests and answers
small. Versions 4-18. Not here: fetching by followers, and reading from the nearest replica
(KIP-392): this broker is the only replica.
"""

from __future__ import annotations

from asyncio import Future
from typing import TYPE_CHECKING

from semel.broker.partitions.fetching import Reading
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from semel.broker.context import Context

API_KEY = 1
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: FetchRequest, version: int
) -> FetchResponse | Future[FetchResponse]:
    fetch = ctx.partitions.sessions.begin(request, version, ctx.now_ms())
    if isinstance(fetch, ErrorCode):
        return FetchResponse(error_code=fetch)
    reading = Reading(
        ctx,
        fetch,
        isolation_level=request.isolation_level,
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, ctx.settings["fetch.max.bytes"]),
        is_follower=request.replica_id >= 0 or request.replica_state.replica_id >= 0,
    )
    response = reading.now(must_answer=request.max_wait_ms <= 0)
    return reading.later(request.max_wait_ms) if response is None else response
