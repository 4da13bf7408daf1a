"""ApiVersions (API 18): what the broker speaks; the first request on most connections.

Versions. 1: throttle time. 2: a throttled answer comes at once. 3: flexible, though never the
answer's header; the client's name and version; features, supported and finalized. 4: a feature's
lowest version may be 0. A broker answers an unknown version with error 35 in the format of
version 0.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message, api_key=18, versions="0-4", flexible="3+"):
    client_software_name: str = string(versions="3+", ignorable=True)
    client_software_version: str = string(versions="3+", ignorable=True)


class ApiVersionsResponse(Message, api_key=18, versions="0-4", flexible="3+"):
    error_code: int = int16()
    api_keys: list[ApiVersionsResponse.ApiVersion] = array("ApiVersion")
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = array(
        "SupportedFeatureKey", versions="3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64(-1, versions="3+", tag=1, ignorable=True)
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = array(
        "FinalizedFeatureKey", versions="3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean(versions="3+", tag=3, ignorable=True)

    class ApiVersion(Struct):
        api_key: int = int16()
        min_version: int = int16()
        max_version: int = int16()

    class SupportedFeatureKey(Struct):
        name: str = string()
        min_version: int = int16()
        max_version: int = int16()

    class FinalizedFeatureKey(Struct):
        name: str = string()
        max_version_level: int = int16()
        min_version_level: int = int16()
