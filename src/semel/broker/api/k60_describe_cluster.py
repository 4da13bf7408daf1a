"""DescribeCluster (API key 60, versions 0-2): the cluster's id, controller and brokers.

Who may:   anyone; the authorized operations told are those of who asks.
Answers:   at once.
Versions:  1 endpoint type (brokers only here), 2 fenced brokers (there are none).
"""

from __future__ import annotations

from semel.broker.context import Context
from semel.broker.failures import ApiError
from semel.broker.operations import allowed_on_cluster
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

API_KEY = 60
VERSIONS = ADVERTISED[API_KEY]

BROKERS, CONTROLLERS = 1, 2


def handle(ctx: Context, request: DescribeClusterRequest, version: int) -> DescribeClusterResponse:
    _check_endpoint(request.endpoint_type)
    host, port = ctx.broker.advertised(ctx.connection)
    broker = DescribeClusterResponse.DescribeClusterBroker(
        broker_id=ctx.catalog.node_id, host=host, port=port, rack=ctx.settings["broker.rack"]
    )
    response = DescribeClusterResponse(
        cluster_id=ctx.catalog.cluster_id, controller_id=ctx.catalog.node_id, brokers=[broker]
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = allowed_on_cluster(ctx)
    return response


def _check_endpoint(endpoint_type: int) -> None:
    if endpoint_type == CONTROLLERS:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        )
    if endpoint_type != BROKERS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}"
        )
