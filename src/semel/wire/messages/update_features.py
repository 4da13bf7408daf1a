"""UpdateFeatures (API 57): raises or lowers features such as transaction.version.

Versions. 0, flexible. 1: upgrade types in place of a flag, and a dry run. 2: one result for all
features.
"""

from __future__ import annotations

from semel.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible="0+"):
    timeout_ms: int = int32(60000)
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = array("FeatureUpdateKey")
    validate_only: bool = boolean(versions="1+")

    class FeatureUpdateKey(Struct):
        feature: str = string()
        max_version_level: int = int16()
        allow_downgrade: bool = boolean(versions="0")
        upgrade_type: int = int8(1, versions="1+")


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = array(
        "UpdatableFeatureResult", versions="0-1", ignorable=True
    )

    class UpdatableFeatureResult(Struct):
        feature: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+")
