"""The topics in which the coordinators keep their state: their names, and how they are made.

Kafka 4.3.1's settings of them: TransactionStateManager.transactionTopicConfigs and
GroupCoordinatorService.groupMetadataTopicConfigs.
"""

from collections.abc import Mapping
from typing import NamedTuple

from semel.broker.settings.definitions import Value

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})


class InternalTopic(NamedTuple):
    partitions: int
    configs: dict[str, str]


def internal_topic(settings: Mapping[str, Value], name: str) -> InternalTopic:
    """How an internal topic is made on first use, whoever asks for it first."""
    if name == CONSUMER_OFFSETS:
        return InternalTopic(
            settings["offsets.topic.num.partitions"],
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings["offsets.topic.segment.bytes"]),
            },
        )
    return InternalTopic(
        settings["transaction.state.log.num.partitions"],
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(settings["transaction.state.log.min.isr"]),
            "segment.bytes": str(settings["transaction.state.log.segment.bytes"]),
            "unclean.leader.election.enable": "false",
        },
    )
