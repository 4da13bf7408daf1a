"""UnregisterBroker (API key 64, version 0): forget a broker that is gone.

Who may:   ALTER on the Cluster.
Answers:   no other broker is registered, and this one is not gone. (Kafka would forget it all the
           same.)
Versions:  0 flexible.
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import require_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

API_KEY = 64
VERSIONS = ADVERTISED[API_KEY]


def handle(
    ctx: Context, request: UnregisterBrokerRequest, version: int
) -> UnregisterBrokerResponse:
    require_cluster(ctx, "ALTER")
    if request.broker_id != ctx.catalog.node_id:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    raise ApiError(
        ErrorCode.INVALID_REQUEST, f"Broker ID {request.broker_id} is this broker, which is running"
    )
