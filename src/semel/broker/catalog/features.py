"""Feature levels this broker can work at, and the rules for changing the finalized (KIP-584)."""

from __future__ import annotations

from collections.abc import Mapping

from semel.broker.failures import ApiError
from semel.wire.errors import ErrorCode

#: With it (KIP-966), how many replicas must be in sync is said once for the whole cluster. One
#: replica is in sync or gone, so it changes nothing else here.
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
#: Feature → levels. metadata.version 7 to 30 are Kafka 3.3-IV3 to 4.3-IV0.
SUPPORTED = {
    ELIGIBLE_LEADER_REPLICAS: range(0, 2),
    "group.version": range(0, 2),
    "metadata.version": range(7, 31),
    "transaction.version": range(0, 3),
}
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def check_update(finalized: Mapping[str, int], name: str, level: int, upgrade_type: int) -> None:
    """Refuse what Kafka's FeatureControlManager refuses."""
    supported = SUPPORTED.get(name)
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        _refuse(name, level, "The controller does not support the given upgrade type.")
    if supported is None:
        _refuse(name, level, "This broker does not support this feature.")
    elif level not in supported:
        _refuse(name, level, f"This broker only supports versions {supported[0]}-{supported[-1]}")
    present = finalized.get(name, 0)
    if level < present and upgrade_type == UPGRADE:
        _refuse(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > present and upgrade_type != UPGRADE:
        _refuse(name, level, "Can't downgrade to a newer version.")


def _refuse(name: str, level: int, why: str) -> None:
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {name}. {why}",
    )
