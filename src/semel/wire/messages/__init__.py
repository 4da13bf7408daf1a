"""The protocol's table of contents: every API by key, and the versions that the broker advertises.

Modules are imported when their API is first used: a broker that starts needs few of them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from semel.wire.errors import ProtocolError
from semel.wire.schema import Message

# API key -> (Kafka's name, module). A module holds <Name>Request and <Name>Response.
APIS: dict[int, tuple[str, str]] = {
    0: ("Produce", "produce"),
    1: ("Fetch", "fetch"),
    2: ("ListOffsets", "list_offsets"),
    3: ("Metadata", "metadata"),
    8: ("OffsetCommit", "offset_commit"),
    9: ("OffsetFetch", "offset_fetch"),
    10: ("FindCoordinator", "find_coordinator"),
    11: ("JoinGroup", "join_group"),
    12: ("Heartbeat", "heartbeat"),
    13: ("LeaveGroup", "leave_group"),
    14: ("SyncGroup", "sync_group"),
    15: ("DescribeGroups", "describe_groups"),
    16: ("ListGroups", "list_groups"),
    17: ("SaslHandshake", "sasl_handshake"),
    18: ("ApiVersions", "api_versions"),
    19: ("CreateTopics", "create_topics"),
    20: ("DeleteTopics", "delete_topics"),
    21: ("DeleteRecords", "delete_records"),
    22: ("InitProducerId", "init_producer_id"),
    23: ("OffsetForLeaderEpoch", "offset_for_leader_epoch"),
    24: ("AddPartitionsToTxn", "add_partitions_to_txn"),
    25: ("AddOffsetsToTxn", "add_offsets_to_txn"),
    26: ("EndTxn", "end_txn"),
    27: ("WriteTxnMarkers", "write_txn_markers"),
    28: ("TxnOffsetCommit", "txn_offset_commit"),
    29: ("DescribeAcls", "describe_acls"),
    30: ("CreateAcls", "create_acls"),
    31: ("DeleteAcls", "delete_acls"),
    32: ("DescribeConfigs", "describe_configs"),
    33: ("AlterConfigs", "alter_configs"),
    34: ("AlterReplicaLogDirs", "alter_replica_log_dirs"),
    35: ("DescribeLogDirs", "describe_log_dirs"),
    36: ("SaslAuthenticate", "sasl_authenticate"),
    37: ("CreatePartitions", "create_partitions"),
    38: ("CreateDelegationToken", "create_delegation_token"),
    39: ("RenewDelegationToken", "renew_delegation_token"),
    40: ("ExpireDelegationToken", "expire_delegation_token"),
    41: ("DescribeDelegationToken", "describe_delegation_token"),
    42: ("DeleteGroups", "delete_groups"),
    43: ("ElectLeaders", "elect_leaders"),
    44: ("IncrementalAlterConfigs", "incremental_alter_configs"),
    45: ("AlterPartitionReassignments", "alter_partition_reassignments"),
    46: ("ListPartitionReassignments", "list_partition_reassignments"),
    47: ("OffsetDelete", "offset_delete"),
    48: ("DescribeClientQuotas", "describe_client_quotas"),
    49: ("AlterClientQuotas", "alter_client_quotas"),
    50: ("DescribeUserScramCredentials", "describe_user_scram_credentials"),
    51: ("AlterUserScramCredentials", "alter_user_scram_credentials"),
    55: ("DescribeQuorum", "describe_quorum"),
    57: ("UpdateFeatures", "update_features"),
    60: ("DescribeCluster", "describe_cluster"),
    61: ("DescribeProducers", "describe_producers"),
    64: ("UnregisterBroker", "unregister_broker"),
    65: ("DescribeTransactions", "describe_transactions"),
    66: ("ListTransactions", "list_transactions"),
    67: ("AllocateProducerIds", "allocate_producer_ids"),
    68: ("ConsumerGroupHeartbeat", "consumer_group_heartbeat"),
    69: ("ConsumerGroupDescribe", "consumer_group_describe"),
    74: ("ListConfigResources", "list_config_resources"),
    75: ("DescribeTopicPartitions", "describe_topic_partitions"),
    76: ("ShareGroupHeartbeat", "share_group_heartbeat"),
    77: ("ShareGroupDescribe", "share_group_describe"),
    78: ("ShareFetch", "share_fetch"),
    79: ("ShareAcknowledge", "share_acknowledge"),
    80: ("AddRaftVoter", "add_raft_voter"),
    81: ("RemoveRaftVoter", "remove_raft_voter"),
    83: ("InitializeShareGroupState", "initialize_share_group_state"),
    84: ("ReadShareGroupState", "read_share_group_state"),
    85: ("WriteShareGroupState", "write_share_group_state"),
    86: ("DeleteShareGroupState", "delete_share_group_state"),
    87: ("ReadShareGroupStateSummary", "read_share_group_state_summary"),
    88: ("StreamsGroupHeartbeat", "streams_group_heartbeat"),
    89: ("StreamsGroupDescribe", "streams_group_describe"),
    90: ("DescribeShareGroupOffsets", "describe_share_group_offsets"),
    91: ("AlterShareGroupOffsets", "alter_share_group_offsets"),
    92: ("DeleteShareGroupOffsets", "delete_share_group_offsets"),
}

# What Apache Kafka 4.3.1 answers to ApiVersions. Wider than the codecs in one place: Produce 0-2
# has none, but a minimum above 0 makes older librdkafka turn compression off. Narrower in two:
# InitProducerId 6 (KIP-939) is not stable yet, AllocateProducerIds is for controllers.
ADVERTISED: dict[int, range] = {
    0: range(0, 14),
    1: range(4, 19),
    2: range(1, 12),
    3: range(0, 14),
    8: range(2, 11),
    9: range(1, 11),
    10: range(0, 7),
    11: range(0, 10),
    12: range(0, 5),
    13: range(0, 6),
    14: range(0, 6),
    15: range(0, 7),
    16: range(0, 6),
    17: range(0, 2),
    18: range(0, 5),
    19: range(2, 8),
    20: range(1, 7),
    21: range(0, 3),
    22: range(0, 6),
    23: range(2, 5),
    24: range(0, 6),
    25: range(0, 5),
    26: range(0, 6),
    27: range(1, 3),
    28: range(0, 6),
    29: range(1, 4),
    30: range(1, 4),
    31: range(1, 4),
    32: range(1, 5),
    33: range(0, 3),
    34: range(1, 3),
    35: range(1, 6),
    36: range(0, 3),
    37: range(0, 4),
    38: range(1, 4),
    39: range(1, 3),
    40: range(1, 3),
    41: range(1, 4),
    42: range(0, 3),
    43: range(0, 3),
    44: range(0, 2),
    45: range(0, 2),
    46: range(0, 1),
    47: range(0, 1),
    48: range(0, 2),
    49: range(0, 2),
    50: range(0, 1),
    51: range(0, 1),
    55: range(0, 3),
    57: range(0, 3),
    60: range(0, 3),
    61: range(0, 1),
    64: range(0, 1),
    65: range(0, 1),
    66: range(0, 3),
    68: range(0, 2),
    69: range(0, 2),
    74: range(0, 2),
    75: range(0, 1),
    76: range(1, 2),
    77: range(1, 2),
    78: range(1, 3),
    79: range(1, 3),
    80: range(0, 2),
    81: range(0, 1),
    83: range(0, 1),
    84: range(0, 1),
    85: range(0, 2),
    86: range(0, 1),
    87: range(0, 2),
    88: range(0, 1),
    89: range(0, 1),
    90: range(0, 2),
    91: range(0, 1),
    92: range(0, 1),
}


@cache
def request_class(api_key: int) -> type[Message]:
    """The request of an API; ProtocolError if there is no such API."""
    return _load(api_key, "Request")


@cache
def response_class(api_key: int) -> type[Message]:
    """The response of an API; ProtocolError if there is no such API."""
    return _load(api_key, "Response")


def _load(api_key: int, suffix: str) -> type[Message]:
    if api_key not in APIS:
        raise ProtocolError(f"there is no API with key {api_key}")
    name, module = APIS[api_key]
    message: type[Message] = getattr(import_module(f"semel.wire.messages.{module}"), name + suffix)
    return message
