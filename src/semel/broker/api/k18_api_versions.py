"""ApiVersions (API key 18, versions 0-4): which APIs this broker speaks, and its features.

Who may:   anyone, also before they say who they are.
Answers:   at once. A version we do not know is answered with error 35 in the form of version 0,
           with the versions of ApiVersions itself, so that the client can ask again (KIP-511).
Versions:  3 flexible, client's name and version, features; 4 features whose least version is 0.
"""

from __future__ import annotations

import re

from semel.broker import api
from semel.broker.catalog.features import SUPPORTED
from semel.broker.context import Context
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

API_KEY = 18
VERSIONS = ADVERTISED[API_KEY]

#: ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN.
SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(ctx: Context, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
    if version >= 3 and not _names_itself(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    features = ctx.catalog.features
    return ApiVersionsResponse(
        api_keys=[_spoken(key, versions) for key, versions in api.versions(ctx.settings).items()],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(
                name=name, min_version=levels.start, max_version=levels[-1]
            )
            for name, levels in SUPPORTED.items()
            # Clients that speak version 3 fail on a least version of 0 (KAFKA-17011).
            if version >= 4 or levels.start > 0
        ],
        finalized_features_epoch=ctx.catalog.offset,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(
                name=name, max_version_level=level, min_version_level=level
            )
            for name, level in features.items()
        ],
    )


def unsupported_version() -> ApiVersionsResponse:
    """The answer, in version 0, to a version that we do not speak."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_spoken(API_KEY, VERSIONS)]
    )


def _names_itself(request: ApiVersionsRequest) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(SOFTWARE.fullmatch(name) for name in names)


def _spoken(key: int, versions: range) -> ApiVersionsResponse.ApiVersion:
    return ApiVersionsResponse.ApiVersion(
        api_key=key, min_version=versions.start, max_version=versions[-1]
    )
