"""UpdateFeatures (API key 57, versions 0-2): finalize features such as transaction.version.

Who may:   ALTER on the Cluster.
Answers:   when durable; all updates of a request or none.
Versions:  1 upgrade types and validate_only, 2 one error for all in place of one per feature.
"""

from __future__ import annotations

from functools import partial

from semel.broker.catalog.draft import CatalogDraft
from semel.broker.catalog.features import SAFE_DOWNGRADE, UPGRADE, check_update
from semel.broker.context import CLUSTER_NAME, Context
from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode
from semel.wire.messages import ADVERTISED
from semel.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

API_KEY = 57
VERSIONS = ADVERTISED[API_KEY]

Update = UpdateFeaturesRequest.FeatureUpdateKey
Result = UpdateFeaturesResponse.UpdatableFeatureResult


async def handle(
    ctx: Context, request: UpdateFeaturesRequest, version: int
) -> UpdateFeaturesResponse:
    if not ctx.may("ALTER", "CLUSTER", CLUSTER_NAME):
        return UpdateFeaturesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await ctx.catalog.change(partial(_decide, ctx, request, version))


def _decide(
    ctx: Context, request: UpdateFeaturesRequest, version: int, draft: CatalogDraft
) -> UpdateFeaturesResponse:
    results = [_check(ctx, update, version) for update in request.feature_updates]
    failed = next((result for result in results if result.error_code), None)
    if failed is None and not request.validate_only:
        draft.set_features(
            {update.feature: update.max_version_level for update in request.feature_updates}
        )
    if failed is not None:
        return UpdateFeaturesResponse(
            error_code=failed.error_code, error_message=failed.error_message
        )
    return UpdateFeaturesResponse(error_message=None, results=results if version < 2 else [])


def _check(ctx: Context, update: Update, version: int) -> Result:
    upgrade_type = update.upgrade_type
    if version == 0:
        upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
    try:
        check_update(ctx.catalog.features, update.feature, update.max_version_level, upgrade_type)
    except ApiError as problem:
        return Result(
            feature=update.feature, error_code=problem.code, error_message=problem.message
        )
    return Result(feature=update.feature, error_message=None)
