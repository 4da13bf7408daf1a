"""The words of access rules (ACLs), and their numbers in requests.

Words are Kafka's, in capitals. A number that Kafka does not know is called UNKNOWN there, and here.
"""

from __future__ import annotations

UNKNOWN, ANY, MATCH, ALL = "UNKNOWN", "ANY", "MATCH", "ALL"
LITERAL, PREFIXED = "LITERAL", "PREFIXED"
ALLOW, DENY = "ALLOW", "DENY"

# The first two of each list are for filters; the order gives the numbers.
RESOURCE_TYPES = (
    UNKNOWN, ANY, "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER",
)  # fmt: skip
PATTERN_TYPES = (UNKNOWN, ANY, MATCH, LITERAL, PREFIXED)
OPERATIONS = (
    UNKNOWN, ANY, ALL, "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
)  # fmt: skip
PERMISSIONS = (UNKNOWN, ANY, DENY, ALLOW)

RESOURCE_TYPE_CODES = {word: code for code, word in enumerate(RESOURCE_TYPES)}
PATTERN_TYPE_CODES = {word: code for code, word in enumerate(PATTERN_TYPES)}
OPERATION_CODES = {word: code for code, word in enumerate(OPERATIONS)}
PERMISSION_CODES = {word: code for code, word in enumerate(PERMISSIONS)}


def word(words: tuple[str, ...], code: int) -> str:
    """What a number of the protocol stands for."""
    return words[code] if 0 <= code < len(words) else UNKNOWN
