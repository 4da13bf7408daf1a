"""DescribeCluster (API 60): brokers, controller and id of the cluster.

Versions. 0, flexible. 1: brokers or controllers. 2: fenced brokers too, on demand.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message, api_key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(1, versions="1+")
    include_fenced_brokers: bool = boolean(versions="2+")


class DescribeClusterResponse(Message, api_key=60, versions="0-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(None, nullable="0+")
    endpoint_type: int = int8(1, versions="1+")
    cluster_id: str = string()
    controller_id: int = int32(-1)
    brokers: list[DescribeClusterResponse.DescribeClusterBroker] = array("DescribeClusterBroker")
    cluster_authorized_operations: int = int32(-(2**31))

    class DescribeClusterBroker(Struct):
        broker_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(None, nullable="0+")
        is_fenced: bool = boolean(versions="2+")
